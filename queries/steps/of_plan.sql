-- The steps that a plan holds, in its order.
SELECT * FROM onefold_steps WHERE plan_id = :plan_id ORDER BY position, step_key
