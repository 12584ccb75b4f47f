-- Renews a lease by the database's clock: 1 row while the key is still theirs, else 0.
UPDATE onefold_idempotency
SET lease_until_us = {now_us} + :lease_us
WHERE tenant_id = :tenant_id AND idempotency_key = :idempotency_key
  AND owner = :owner AND token = :token AND version = :version AND state = 'PROCESSING'
