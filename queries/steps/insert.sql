-- Adds steps, one row each of :rows; a key is unique, so of two who add it one learns that it is there.
INSERT INTO onefold_steps (step_key, digest, plan_id, intent_id, position, ledger, tenant_id, row_id, from_status,
    to_status, amount_minor, currency, provider_key, state, sent, owner, token, lease_until_us,
    version_before, version_after, refunded_before_minor, refunded_after_minor, note,
    sent_at_us, provider_ref, sent_through, updated_at_us)
VALUES :rows
