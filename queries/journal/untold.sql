-- What onefold's tables say and the journal does not: 1 row each, at most 100 of a kind.
SELECT * FROM (
    SELECT p.plan_id AS id, 'plan' AS kind FROM onefold_plans AS p
    WHERE NOT EXISTS (SELECT 1 FROM onefold_journal AS j
                      WHERE j.plan_id = p.plan_id AND j.event = 'planned' AND j.at_us = p.made_at_us
                        AND SUBSTR(j.note, 1, LENGTH(p.digest)) = p.digest)
    LIMIT 100) AS made
UNION ALL
SELECT * FROM (
    SELECT p.plan_id AS id, 'begun plan' AS kind FROM onefold_plans AS p
    WHERE p.begun_at_us IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM onefold_journal AS j
                      WHERE j.plan_id = p.plan_id AND j.event = 'begun' AND j.at_us = p.begun_at_us)
    LIMIT 100) AS begun
UNION ALL
SELECT * FROM (
    SELECT s.row_id AS id, 'step on row' AS kind FROM onefold_steps AS s
    WHERE s.state IN ('DONE', 'SKIPPED', 'FAILED')
      AND NOT EXISTS (SELECT 1 FROM onefold_journal AS j
                      WHERE j.tenant_id = s.tenant_id AND j.row_id = s.row_id AND j.ledger = s.ledger
                        AND j.intent_id IS NOT NULL)
    LIMIT 100) AS stepped
UNION ALL
SELECT * FROM (
    SELECT a.plan_id AS id, 'approval of' AS kind FROM onefold_approvals AS a
    WHERE NOT EXISTS (SELECT 1 FROM onefold_journal AS j
                      WHERE j.plan_id = a.plan_id AND j.event = 'approved' AND j.actor = a.actor AND j.at_us = a.at_us)
    LIMIT 100) AS approved
UNION ALL
SELECT * FROM (
    SELECT r.rule AS id, 'rule' AS kind FROM onefold_rules AS r
    WHERE r.position > (SELECT COUNT(*) FROM onefold_journal WHERE event = 'approval-rule-set')
       OR NOT EXISTS (SELECT 1 FROM onefold_journal AS j
                      WHERE j.event = 'approval-rule-set' AND j.actor = r.actor AND j.at_us = r.at_us)
    LIMIT 100) AS ruled
