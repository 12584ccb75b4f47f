-- The first step that a plan holds: 1 row, or 0 where it has claimed none.
SELECT step_key FROM onefold_steps WHERE plan_id = :plan_id ORDER BY position, step_key LIMIT 1
