-- The steps on one row of a ledger, in the order in which they were last changed.
SELECT * FROM onefold_steps
WHERE tenant_id = :tenant_id AND ledger = :ledger AND row_id = :row_id
ORDER BY updated_at_us, position, step_key
