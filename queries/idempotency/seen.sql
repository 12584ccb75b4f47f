-- Notes that a key was asked for again: 1 row.
UPDATE onefold_idempotency SET last_seen_us = {now_us}
WHERE tenant_id = :tenant_id AND idempotency_key = :idempotency_key
