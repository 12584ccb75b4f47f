-- The keys that are about an order or a payment, archived or not.
SELECT tenant_id, idempotency_key
FROM onefold_idempotency_names
WHERE ledger = :ledger AND row_id = :row_id
  AND tenant_id = :tenant_id -- when tenant_id
ORDER BY tenant_id, idempotency_key
