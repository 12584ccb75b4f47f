-- How many heads were ever written: one row.
SELECT value FROM onefold_counters WHERE name = 'heads'
