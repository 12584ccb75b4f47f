-- Of the steps on some rows of a tenant, whatever their ledger and state, what the rules ask for. Not by state: without
-- statistics a planner takes nearly all steps for those of some state.
SELECT ledger, tenant_id, row_id, from_status, to_status, state, refunded_before_minor, refunded_after_minor
FROM onefold_steps
WHERE tenant_id = :tenant_id AND row_id IN (:row_ids)
