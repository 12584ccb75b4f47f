-- What is installed of ours, triggers first: kind, name, and the table of a trigger where dropping it must name it.
SELECT kind, name, NULL AS place
FROM (
    SELECT 'TRIGGER' AS kind, CAST(trigger_name AS CHAR) AS name, 1 AS position
    FROM information_schema.triggers
    WHERE trigger_schema = DATABASE() AND trigger_name LIKE 'onefold\_guard\_%'
    UNION ALL
    SELECT 'PROCEDURE', CAST(routine_name AS CHAR), 2
    FROM information_schema.routines
    WHERE routine_schema = DATABASE() AND routine_name LIKE 'onefold\_guard\_%'
    UNION ALL
    SELECT 'VIEW', CAST(table_name AS CHAR), 3
    FROM information_schema.views
    WHERE table_schema = DATABASE() AND table_name LIKE 'onefold\_guard\_%'
) AS ours
ORDER BY position, name
