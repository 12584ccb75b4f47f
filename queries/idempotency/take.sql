-- Takes a key that is still as it was seen, under the next fencing token: 1 row or 0. One that somebody holds is
-- taken only when its lease is over by the database's clock.
UPDATE onefold_idempotency
SET state = :state, owner = :owner, lease_until_us = {now_us} + :lease_us, token = token + 1, version = version + 1,
    may_have_run = :may_have_run, exit_code = NULL, result_ref = NULL, result = NULL, note = :note,
    last_seen_us = {now_us}
WHERE tenant_id = :tenant_id AND idempotency_key = :idempotency_key AND version = :version AND state = :seen_state
  AND (state <> 'PROCESSING' OR lease_until_us <= {now_us})
