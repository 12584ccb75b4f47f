-- Drops what a lower tier does not keep of a record that is still as it was seen, and was not asked for since: 1 row or 0.
UPDATE onefold_idempotency
SET retention = :to, result = NULL, result_ref = :result_ref
    , digest_parts = :digest_parts -- when digest_parts
WHERE tenant_id = :tenant_id AND idempotency_key = :idempotency_key AND version = :version
  AND state = :state AND retention = :retention AND last_seen_us = :last_seen_us
