-- One step: 0 or 1 row.
SELECT * FROM onefold_steps WHERE step_key = :step_key
