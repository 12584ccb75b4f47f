-- What is installed of ours: kind, name, table, and whether it holds.
SELECT 'INDEX' AS kind, name, tbl_name AS place, 1 AS valid
FROM sqlite_schema
WHERE (type = 'index' AND name GLOB 'onefold_unique_*') OR (type = 'table' AND name IN ('onefold_inbox', 'onefold_idempotency', 'onefold_idempotency_archive'))
