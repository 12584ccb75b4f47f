-- The rule that stands for approvals, null where none was ever set, with how often the journal's chains tell that one
-- was set, and what the last time: 1 row.
SELECT r.position, r.rule, told.times, told.last
FROM (SELECT (SELECT COUNT(*) FROM onefold_journal WHERE event = 'approval-rule-set' AND chain IS NOT NULL) AS times,
             (SELECT to_status FROM onefold_journal WHERE event = 'approval-rule-set' AND chain IS NOT NULL
              ORDER BY seq DESC LIMIT 1) AS last) AS told
LEFT JOIN onefold_rules AS r ON r.position = (SELECT MAX(position) FROM onefold_rules)
