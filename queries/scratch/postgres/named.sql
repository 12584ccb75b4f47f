-- The schemas that are named as a drill names its own.
SELECT nspname::text AS name FROM pg_catalog.pg_namespace
WHERE nspname LIKE 'onefold\_drill\_%'
ORDER BY nspname
