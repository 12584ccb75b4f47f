-- Marks a step as moved, in the transaction of its move.
INSERT INTO onefold_marks (step_key, version_after, moved_at_us) VALUES (:step_key, :version_after, :moved_at_us)
