-- Ends what its owner began, under the token it was taken with: 1 row, or 0 for an owner who has been replaced.
UPDATE onefold_idempotency
SET state = :state, exit_code = :exit_code, result_ref = :result_ref, result = :result, note = :note,
    version = version + 1, last_seen_us = {now_us}
WHERE tenant_id = :tenant_id AND idempotency_key = :idempotency_key
  AND owner = :owner AND token = :token AND version = :version AND state = 'PROCESSING'
