-- Those steps of a plan that are on these rows of a tenant, in the order of their intents.
SELECT * FROM onefold_steps
WHERE tenant_id = :tenant_id AND row_id IN (:row_ids) AND plan_id = :plan_id
ORDER BY position, step_key
