-- The head that was written last: one row, or none.
SELECT position, previous_hash, hash, chain, last_position, last_hash, at_us, actor
FROM onefold_heads
ORDER BY position DESC
LIMIT 1
