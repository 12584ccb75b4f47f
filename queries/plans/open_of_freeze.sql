-- The open plans of a freeze but one.
SELECT plan_id, freeze_id, made_at_us, body
FROM onefold_plans
WHERE freeze_id = :freeze_id AND state = 'OPEN' AND plan_id <> :plan_id
ORDER BY made_at_us, plan_id
