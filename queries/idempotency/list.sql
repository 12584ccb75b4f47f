-- Every key, or those of one tenant or in one state, without their results; the one seen last comes first.
SELECT tenant_id, idempotency_key, digest, digest_parts, state, owner, lease_until_us, token, version, may_have_run,
       result_ref, exit_code, note, attempts, first_seen_us, last_seen_us, keep_for_us, retention, {now_us} AS now_us
FROM onefold_idempotency
WHERE 1 = 1
  AND tenant_id = :tenant_id -- when tenant_id
  AND state = :state -- when state
ORDER BY last_seen_us DESC, tenant_id, idempotency_key
