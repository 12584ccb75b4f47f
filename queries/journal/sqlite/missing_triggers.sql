-- The triggers on the journal, its heads, approvals and rules that are missing or disabled, by name.
SELECT name FROM (
    SELECT 'onefold_journal_is_kept_as_it_is' AS name UNION ALL
    SELECT 'onefold_journal_is_kept' AS name UNION ALL
    SELECT 'onefold_journal_is_not_replaced' AS name UNION ALL
    SELECT 'onefold_journal_is_chained' AS name UNION ALL
    SELECT 'onefold_heads_are_kept_as_they_are' AS name UNION ALL
    SELECT 'onefold_heads_are_kept' AS name UNION ALL
    SELECT 'onefold_heads_are_not_replaced' AS name UNION ALL
    SELECT 'onefold_approvals_are_kept_as_they_are' AS name UNION ALL
    SELECT 'onefold_approvals_are_kept' AS name UNION ALL
    SELECT 'onefold_rules_are_kept_as_they_are' AS name UNION ALL
    SELECT 'onefold_rules_are_kept' AS name UNION ALL
    SELECT 'onefold_rules_are_not_replaced' AS name
) AS expected
WHERE name NOT IN (SELECT name FROM sqlite_master WHERE type = 'trigger')
ORDER BY name
