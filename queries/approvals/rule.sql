-- The rule that stands for approvals, with what the journal's chains tell of it: 1 row, or 0 where none was ever set.
SELECT r.position, r.rule,
       (SELECT MAX(j.to_status) FROM onefold_journal AS j
        WHERE j.event = 'approval-rule-set' AND j.actor = r.actor AND j.at_us = r.at_us AND j.chain IS NOT NULL) AS told
FROM onefold_rules AS r
ORDER BY r.position DESC
LIMIT 1
