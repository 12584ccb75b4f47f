-- Those of some privileges that the user has on a table, and DROP where he is its owner; none
-- where there is no such table.
SELECT asked.privilege FROM (VALUES :privileges) AS asked (privilege)
WHERE has_table_privilege(CAST(to_regclass(:table) AS oid), asked.privilege)
UNION ALL
SELECT 'DROP' FROM pg_class
WHERE pg_class.oid = CAST(to_regclass(:table) AS oid) AND pg_has_role(pg_class.relowner, 'USAGE')
