-- Heads in the order of writing: all of them, those of one chain, or those of the chains that tell of a plan.
SELECT position, previous_hash, hash, chain, last_position, last_hash, at_us, actor
FROM onefold_heads
WHERE 1 = 1
  AND chain = :chain -- when chain
  AND chain IN (SELECT chain FROM onefold_journal WHERE plan_id = :plan_id) -- when plan_id
  AND position <= :up_to -- when up_to
ORDER BY position
