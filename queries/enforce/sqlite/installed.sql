-- What is installed of ours, triggers first: kind, name, and the table of a trigger where dropping it must name it.
SELECT UPPER(type) AS kind, name, NULL AS place
FROM sqlite_schema
WHERE type IN ('trigger', 'view') AND name GLOB 'onefold_guard_*'
ORDER BY type, name
