-- Changes the mark of a step that is still as it was seen: 1 row or 0.
UPDATE onefold_marks SET version_after = :version_after, moved_at_us = :moved_at_us
WHERE step_key = :step_key AND version_after = :seen
