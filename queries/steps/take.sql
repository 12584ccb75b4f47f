-- Takes a step that is still as it was seen: 1 row or 0.
UPDATE onefold_steps
SET digest = :digest, plan_id = :plan_id, intent_id = :intent_id, position = :position,
    amount_minor = :amount_minor, currency = :currency, provider_key = :provider_key,
    state = :state, sent = :sent, owner = :owner, token = :token, lease_until_us = :lease_until_us,
    version_before = :version_before, version_after = :version_after,
    refunded_before_minor = :refunded_before_minor, refunded_after_minor = :refunded_after_minor,
    note = :note, sent_at_us = :sent_at_us, provider_ref = :provider_ref,
    sent_through = :sent_through,
    updated_at_us = :updated_at_us
WHERE step_key = :step_key AND state = :seen_state AND owner = :seen_owner AND token = :seen_token
  AND updated_at_us = :seen_updated_at_us
