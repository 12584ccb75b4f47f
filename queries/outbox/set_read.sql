-- Marks an answer about a charge as used: 1 row, or 0 where another used it.
UPDATE onefold_outbox SET state = 'READ' WHERE request_key = :request_key AND kind = 'QUERY' AND state = 'DONE'
