-- Every step that has ended: done, already so, refused by the provider for good, or given up; but those of one plan.
SELECT * FROM onefold_steps
WHERE state IN ('DONE', 'SKIPPED', 'FAILED', 'WITHDRAWN')
  AND plan_id <> :but_plan -- when but_plan
ORDER BY updated_at_us, position, step_key
