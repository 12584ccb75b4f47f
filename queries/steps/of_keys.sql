-- Those steps of a plan that have these keys, in the order of their intents.
SELECT * FROM onefold_steps WHERE step_key IN (:step_keys) AND plan_id = :plan_id ORDER BY position, step_key
