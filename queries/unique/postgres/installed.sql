-- What is installed of ours: kind, name, table, and whether it holds (one that could not be built online does not).
SELECT 'INDEX' AS kind, i.relname::text AS name, t.relname::text AS place,
       CASE WHEN x.indisvalid THEN 1::bigint ELSE 0::bigint END AS valid
FROM pg_index AS x
JOIN pg_class AS i ON i.oid = x.indexrelid
JOIN pg_class AS t ON t.oid = x.indrelid
JOIN pg_namespace AS n ON n.oid = i.relnamespace
WHERE n.nspname = ANY (current_schemas(false)) AND i.relname LIKE 'onefold\_unique\_%'
UNION ALL
SELECT 'TABLE', c.relname::text, c.relname::text, 1::bigint
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = ANY (current_schemas(false)) AND c.relname IN ('onefold_inbox', 'onefold_idempotency', 'onefold_idempotency_archive') AND c.relkind = 'r'
