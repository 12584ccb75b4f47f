-- The heads of the open plans and of the twenty made last, the newest first.
SELECT plan_id, state, freeze_id, made_at_us, made_by
FROM onefold_plans
WHERE state = 'OPEN' OR plan_id IN (SELECT plan_id FROM (SELECT plan_id FROM onefold_plans ORDER BY made_at_us DESC, plan_id DESC LIMIT 20) AS newest)
ORDER BY made_at_us DESC, plan_id DESC
