-- The rule that stands for approvals: 1 row, or 0 where none was ever set.
SELECT position, rule FROM onefold_rules ORDER BY position DESC LIMIT 1
