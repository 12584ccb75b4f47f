-- A request that the sandbox was sent, by its idempotency key: 0 or 1 row.
SELECT idempotency_key, kind, amount_minor, currency, status, asked
FROM onefold_sandbox_requests
WHERE idempotency_key = :idempotency_key
