-- Freezes that nobody has ended, the oldest first.
SELECT freeze_id, token, owner, reason, scope, effects, topics, mode, narrowed_to, state, frozen_at_us, lease_until_us
FROM onefold_freezes
WHERE state IN ('LIVE', 'NARROWED')
ORDER BY frozen_at_us, freeze_id
