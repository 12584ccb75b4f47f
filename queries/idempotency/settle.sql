-- Says how something ended whose end nobody knew, if it is still as it was seen: 1 row or 0.
UPDATE onefold_idempotency
SET state = :state, exit_code = :exit_code, result_ref = :result_ref, result = :result, note = :note,
    version = version + 1, last_seen_us = {now_us}
WHERE tenant_id = :tenant_id AND idempotency_key = :idempotency_key AND version = :version AND state = 'UNKNOWN'
