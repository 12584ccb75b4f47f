-- One freeze: 0 or 1 row.
SELECT freeze_id, token, owner, reason, scope, effects, topics, mode, narrowed_to, state, frozen_at_us, lease_until_us
FROM onefold_freezes
WHERE freeze_id = :freeze_id
