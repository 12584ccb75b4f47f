-- Gives a freeze another owner and token, as a compare-and-set on the old token: 1 row or 0.
UPDATE onefold_freezes
SET owner = :owner, token = :token, lease_until_us = :lease_until_us
WHERE freeze_id = :freeze_id AND token = :old_token AND state IN ('LIVE', 'NARROWED')
