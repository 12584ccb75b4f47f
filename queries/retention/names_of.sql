-- What these keys of a tenant are about, a row an order or payment.
SELECT tenant_id, idempotency_key, ledger, row_id
FROM onefold_idempotency_names
WHERE tenant_id = :tenant_id AND idempotency_key IN (:keys)
ORDER BY tenant_id, idempotency_key, ledger, row_id
