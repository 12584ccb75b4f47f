-- The triggers on the journal, its heads, approvals and rules that are missing or disabled, by name.
-- A user without the right TRIGGER sees none of them.
SELECT CAST(name AS CHAR) AS name FROM (
    SELECT 'onefold_journal_is_kept_as_it_is' AS name UNION ALL
    SELECT 'onefold_journal_is_kept' AS name UNION ALL
    SELECT 'onefold_heads_are_kept_as_they_are' AS name UNION ALL
    SELECT 'onefold_heads_are_kept' AS name UNION ALL
    SELECT 'onefold_approvals_are_kept_as_they_are' AS name UNION ALL
    SELECT 'onefold_approvals_are_kept' AS name UNION ALL
    SELECT 'onefold_journal_is_chained' AS name UNION ALL
    SELECT 'onefold_rules_are_kept_as_they_are' AS name UNION ALL
    SELECT 'onefold_rules_are_kept' AS name
) AS expected
WHERE NOT EXISTS (SELECT 1 FROM information_schema.TRIGGERS AS t
                  WHERE t.TRIGGER_SCHEMA = DATABASE() AND t.TRIGGER_NAME = expected.name)
ORDER BY name
