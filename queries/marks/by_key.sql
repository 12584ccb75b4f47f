-- Whether a step was moved in this database, and to which version of its row: 0 or 1 row.
SELECT version_after FROM onefold_marks WHERE step_key = :step_key
