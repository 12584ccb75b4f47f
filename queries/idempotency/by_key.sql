-- The record of one key, and the database's time: 0 or 1 row.
SELECT *, {now_us} AS now_us FROM onefold_idempotency
WHERE tenant_id = :tenant_id AND idempotency_key = :idempotency_key
