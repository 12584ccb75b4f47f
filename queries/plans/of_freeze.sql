-- Every plan of a freeze, the newest first.
SELECT plan_id, freeze_id, made_at_us, body, state, superseded_by, made_by, os_user, login, approval, begun_at_us
FROM onefold_plans
WHERE freeze_id = :freeze_id
ORDER BY made_at_us DESC, plan_id DESC
