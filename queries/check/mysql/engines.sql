-- Which engine keeps some tables, and whether it has transactions; a view has no engine.
SELECT t.table_name, COALESCE(t.engine, 'no engine'), COALESCE(e.transactions, 'NO')
FROM information_schema.tables t
LEFT JOIN information_schema.engines e ON e.engine = t.engine
WHERE (t.table_schema = DATABASE() AND t.table_name IN (:tables))
   OR CONCAT(t.table_schema, '.', t.table_name) IN (:tables)
