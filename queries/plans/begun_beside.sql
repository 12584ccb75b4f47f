-- The plans that were begun since a time, or under the same freeze as one, but for that one.
SELECT body, state, superseded_by, made_by, os_user, login, approval, begun_at_us
FROM onefold_plans
WHERE begun_at_us IS NOT NULL AND plan_id <> :plan_id AND (begun_at_us >= :since_us OR freeze_id = :freeze_id)
