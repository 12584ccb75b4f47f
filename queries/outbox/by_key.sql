-- One request with its answer: 0 or 1 row.
SELECT * FROM onefold_outbox WHERE request_key = :request_key
