-- Writes what became of a request: 1 row.
UPDATE onefold_sandbox_requests SET status = :status, asked = :asked WHERE idempotency_key = :idempotency_key
