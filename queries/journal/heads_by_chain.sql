-- The heads up to one of them, in the order of their chains.
SELECT position, previous_hash, hash, chain, last_position, last_hash, at_us, actor
FROM onefold_heads
WHERE position <= :up_to
ORDER BY chain
