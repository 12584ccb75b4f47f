-- The columns and expressions of a table's indexes: a row a part, the parts of one index in their order.
SELECT CAST(i.indexrelid AS TEXT), pg_get_indexdef(i.indexrelid, CAST(n AS INTEGER), TRUE)
FROM pg_index i CROSS JOIN generate_series(1, 32) AS n
WHERE i.indrelid = CAST(to_regclass(:table) AS oid) AND i.indisvalid AND n <= i.indnkeyatts
ORDER BY 1, n
