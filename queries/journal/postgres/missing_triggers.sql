-- The triggers on the journal, its heads, approvals and rules that are missing or disabled, by name.
SELECT trigger_name || ' on ' || table_name AS name
FROM (SELECT t AS table_name, n AS trigger_name
      FROM unnest(ARRAY['onefold_journal', 'onefold_heads', 'onefold_approvals', 'onefold_rules']) AS t
      CROSS JOIN unnest(ARRAY['onefold_rows_are_kept', 'onefold_table_is_kept']) AS n
      UNION ALL SELECT 'onefold_journal', 'onefold_entries_are_chained') AS expected
WHERE NOT EXISTS (SELECT 1 FROM pg_trigger
                  WHERE tgrelid = to_regclass(table_name) AND tgname = trigger_name AND tgenabled IN ('O', 'A'))
ORDER BY 1
