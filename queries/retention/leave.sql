-- Takes a record out of the table, in the transaction that adds its fingerprint to the archive: 1 row, or 0 where it is
-- not as it was seen or was asked for since.
DELETE FROM onefold_idempotency
WHERE tenant_id = :tenant_id AND idempotency_key = :idempotency_key AND version = :version
  AND state = :state AND retention = :retention AND last_seen_us = :last_seen_us
