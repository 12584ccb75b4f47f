-- What is installed of ours and not disabled, triggers first: kind, name, and the table of a trigger.
SELECT 'TRIGGER' AS kind, tgname::text AS name, tgrelid::regclass::text AS place, 1 AS position
FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE tgname LIKE 'onefold\_guard\_%' AND NOT tgisinternal AND tgenabled <> 'D'
  AND pg_table_is_visible(tgrelid)
UNION ALL
SELECT 'FUNCTION', proname::text, NULL, 2
FROM pg_proc
WHERE proname LIKE 'onefold\_guard\_%' AND pg_function_is_visible(oid)
UNION ALL
SELECT 'VIEW', relname::text, NULL, 3
FROM pg_class
WHERE relname LIKE 'onefold\_guard\_%' AND relkind = 'v' AND pg_table_is_visible(oid)
ORDER BY position, name
