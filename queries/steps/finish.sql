-- Ends or changes a step that is still held by this owner under this token: 1 row or 0.
UPDATE onefold_steps
SET state = :state, sent = :sent, version_before = :version_before, version_after = :version_after,
    refunded_before_minor = :refunded_before_minor, refunded_after_minor = :refunded_after_minor,
    note = :note, provider_ref = :provider_ref, updated_at_us = :updated_at_us
WHERE step_key = :step_key AND owner = :owner AND token = :token
