-- Every step that has not ended, with its row.
SELECT plan_id, intent_id, tenant_id, ledger, row_id FROM onefold_steps
WHERE state IN ('PENDING', 'PROCESSING', 'ACCEPTED', 'UNKNOWN')
ORDER BY plan_id, intent_id, tenant_id, ledger, row_id, step_key
