-- The databases that are named as a drill names its own.
SELECT CAST(schema_name AS CHAR) AS name FROM information_schema.schemata
WHERE schema_name LIKE 'onefold\_drill\_%'
ORDER BY schema_name
