-- Steps that were begun and not ended, the oldest first.
SELECT * FROM onefold_steps WHERE state IN ('PROCESSING', 'ACCEPTED', 'UNKNOWN') ORDER BY updated_at_us, step_key
