-- Marks a step as moved, in the transaction of its move, or its move as given up; its key is unique, so of two
-- who would add it one learns that it is there.
INSERT INTO onefold_marks (step_key, version_after, moved_at_us) VALUES (:step_key, :version_after, :moved_at_us)
