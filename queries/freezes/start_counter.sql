-- Starts the counter of fencing tokens at 0 where there is none yet.
INSERT INTO onefold_counters (name, value)
SELECT 'fence', 0 FROM (SELECT COUNT(*) AS n FROM onefold_counters WHERE name = 'fence') AS c WHERE c.n = 0
