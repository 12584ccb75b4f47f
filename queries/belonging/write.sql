-- Says that this database belongs to a journal, where nothing is said yet: 1 row or 0; where another was faster, a unique
-- violation.
INSERT INTO onefold_belongs (id, journal, is_home, label)
SELECT 1, :journal, :is_home, :label FROM (SELECT COUNT(*) AS n FROM onefold_belongs) AS b WHERE b.n = 0
