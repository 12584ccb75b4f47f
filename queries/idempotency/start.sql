-- Says, before the effect begins, that it may have happened from now on, and renews the lease: 1 row while
-- the key is still theirs, else 0.
UPDATE onefold_idempotency
SET may_have_run = 1, attempts = attempts + 1, version = version + 1, lease_until_us = {now_us} + :lease_us
WHERE tenant_id = :tenant_id AND idempotency_key = :idempotency_key
  AND owner = :owner AND token = :token AND version = :version AND state = 'PROCESSING'
