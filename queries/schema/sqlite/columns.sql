-- The columns that a table has, in their order; no row where it is not there.
SELECT name FROM pragma_table_info(:table_name) ORDER BY cid
