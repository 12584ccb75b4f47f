-- Adds a head, in the transaction that has counted it.
INSERT INTO onefold_heads (position, previous_hash, hash, chain, last_position, last_hash, at_us, actor)
VALUES (:position, :previous_hash, :hash, :chain, :last_position, :last_hash, :at_us, :actor)
