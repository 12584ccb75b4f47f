-- Adds a freeze.
INSERT INTO onefold_freezes (freeze_id, token, owner, reason, scope, effects, topics, mode, state,
                             frozen_at_us, lease_until_us)
VALUES (:freeze_id, :token, :owner, :reason, :scope, :effects, :topics, :mode, :state, :frozen_at_us, :lease_until_us)
