-- The columns of a table's indexes: a row a column, those of one index in their order.
SELECT index_name, COALESCE(column_name, '')
FROM information_schema.statistics
WHERE (table_schema = DATABASE() AND table_name = :table) OR CONCAT(table_schema, '.', table_name) = :table
ORDER BY index_name, seq_in_index
