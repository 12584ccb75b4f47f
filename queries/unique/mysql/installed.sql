-- What is installed of ours: kind, name, table, and whether it holds.
SELECT 'INDEX' AS kind, CAST(index_name AS CHAR) AS name, CAST(table_name AS CHAR) AS place, CAST(1 AS SIGNED) AS valid
FROM information_schema.statistics
WHERE table_schema = DATABASE() AND index_name LIKE 'onefold\_unique\_%' AND seq_in_index = 1
UNION ALL
SELECT 'COLUMN', CAST(column_name AS CHAR), CAST(table_name AS CHAR), CAST(1 AS SIGNED)
FROM information_schema.columns
WHERE table_schema = DATABASE() AND column_name IN ('onefold_live_key', 'onefold_live_user')
UNION ALL
SELECT 'TABLE', CAST(table_name AS CHAR), CAST(table_name AS CHAR), CAST(1 AS SIGNED)
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name IN ('onefold_inbox', 'onefold_idempotency', 'onefold_idempotency_archive')
