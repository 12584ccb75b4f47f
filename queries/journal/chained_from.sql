-- The number of the first entry that stands in a chain: one row, null where there is none.
SELECT MIN(seq) AS seq FROM onefold_journal WHERE chain IS NOT NULL
