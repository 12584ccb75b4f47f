-- The fencing token given out last: one row.
SELECT value FROM onefold_counters WHERE name = 'fence'
