-- Renews a lease, as a compare-and-set on owner and token: 1 row when it is still theirs, else 0.
UPDATE onefold_freezes
SET lease_until_us = :lease_until_us
WHERE freeze_id = :freeze_id AND owner = :owner AND token = :token AND state IN ('LIVE', 'NARROWED')
