-- Starts the count of the journal's heads at 0 where there is none yet.
INSERT INTO onefold_counters (name, value)
SELECT 'heads', 0 FROM (SELECT COUNT(*) AS n FROM onefold_counters WHERE name = 'heads') AS c WHERE c.n = 0
