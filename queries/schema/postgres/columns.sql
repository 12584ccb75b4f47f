-- The columns that a table has, in their order; no row where it is not there.
SELECT attname::text AS name
FROM pg_attribute
WHERE attrelid = to_regclass(:table_name) AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
