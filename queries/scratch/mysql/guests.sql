-- What is in a scratch database and is not a drill's.
SELECT CAST(table_name AS CHAR) AS name FROM information_schema.tables
WHERE table_schema = :scratch
  AND table_name NOT IN ('orders', 'payments', 'inventory', 'messages', 'onefold_idempotency',
                         'onefold_idempotency_names', 'onefold_idempotency_archive', 'onefold_drill')
ORDER BY table_name
