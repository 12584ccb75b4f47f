-- The steps on some payments of a tenant, in the order in which they were last changed.
SELECT * FROM onefold_steps
WHERE tenant_id = :tenant_id AND row_id IN (:payment_ids) AND ledger = 'payments'
ORDER BY updated_at_us, position, step_key
