-- One step that a plan holds, or none.
SELECT * FROM onefold_steps WHERE plan_id = :plan_id LIMIT 1
