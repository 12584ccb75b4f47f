-- The head with a hash: one row, or none.
SELECT position FROM onefold_heads WHERE hash = :hash ORDER BY position
