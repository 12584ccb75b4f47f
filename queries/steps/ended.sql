-- Every step that has ended: done, already so, refused by the provider for good, or given up.
SELECT * FROM onefold_steps WHERE state IN ('DONE', 'SKIPPED', 'FAILED', 'WITHDRAWN') ORDER BY updated_at_us, position, step_key
