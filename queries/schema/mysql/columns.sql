-- The columns that a table has, in their order; no row where it is not there.
SELECT CAST(column_name AS CHAR) AS name
FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name = :table_name
ORDER BY ordinal_position
