-- The next records of a tier that have ended and were not seen for so long, the one seen longest ago first.
SELECT tenant_id, idempotency_key, digest, state, version, result_ref, exit_code, first_seen_us, last_seen_us,
       keep_for_us, retention, CASE WHEN result IS NULL THEN 0 ELSE 1 END AS has_result, {now_us} AS now_us
FROM onefold_idempotency
WHERE retention = :retention AND last_seen_us <= {now_us} - :window_us AND state IN ('SUCCEEDED', 'FAILED')
  AND (last_seen_us > :after_us
       OR last_seen_us = :after_us AND (tenant_id > :after_tenant
                                        OR tenant_id = :after_tenant AND idempotency_key > :after_key))
ORDER BY last_seen_us, tenant_id, idempotency_key
LIMIT :batch
