-- Takes a key that nobody has, before any effect: it is unique, so of two who take it one learns that it is there.
-- It is committed only where archived.sql, asked after it in its transaction, has no row of the key.
INSERT INTO onefold_idempotency (tenant_id, idempotency_key, digest, digest_parts, state, owner, lease_until_us,
    token, version, may_have_run, attempts, first_seen_us, last_seen_us, keep_for_us, retention)
VALUES (:tenant_id, :idempotency_key, :digest, :digest_parts, 'PROCESSING', :owner, {now_us} + :lease_us,
    1, 1, 0, 0, {now_us}, {now_us}, :keep_for_us, 'hot')
