-- Keys that somebody holds whose lease is over, and whose effect may have begun: the oldest first.
SELECT *, {now_us} AS now_us FROM onefold_idempotency
WHERE state = 'PROCESSING' AND may_have_run = 1 AND lease_until_us <= {now_us}
ORDER BY lease_until_us, tenant_id, idempotency_key
LIMIT :batch
