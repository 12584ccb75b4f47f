-- Last in a transaction that changes a copy: whether a trigger needs to look further.
UPDATE onefold_gate SET frozen = (SELECT COUNT(*) FROM onefold_frozen WHERE ended = 0) WHERE id = 1
