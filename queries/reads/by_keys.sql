-- Orders of one tenant that carry one of some idempotency keys.
SELECT * FROM {ledger}
WHERE tenant_id = :tenant_id AND idempotency_key IN (:keys)
