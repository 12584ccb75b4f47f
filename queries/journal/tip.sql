-- The last entry of a chain: one row, or none.
SELECT chain, position, hash, event
FROM onefold_journal
WHERE chain = :chain
ORDER BY position DESC
LIMIT 1
