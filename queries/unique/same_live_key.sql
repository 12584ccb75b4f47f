-- Live orders whose key some other live order of the tenant has, too; at most 1,000.
SELECT * FROM {ledger}
WHERE status IN (:live)
  AND (tenant_id, idempotency_key) IN (SELECT tenant_id, idempotency_key FROM {ledger}
                                       WHERE status IN (:live) AND idempotency_key IS NOT NULL
                                       GROUP BY tenant_id, idempotency_key HAVING COUNT(*) > 1)
ORDER BY tenant_id, idempotency_key, created_at_us, order_id
LIMIT 1000
