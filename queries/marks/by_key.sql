-- What became of a step's move in this database: the version that it left its row with and when, or by whom it
-- was given up (then the time is 0). 0 or 1 row.
SELECT version_after, moved_at_us FROM onefold_marks WHERE step_key = :step_key
