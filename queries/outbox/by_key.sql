-- One request with its answer: 0 or 1 row.
SELECT request_key, kind, tenant_id, payment_id, provider, provider_txn_id, amount_minor, currency, requested_at_us, state,
       provider_ref, answered_at_us, note, charge_status, charge_amount_minor, charge_refunded_minor, charge_captured_at_us,
       refund_refused
FROM onefold_outbox WHERE request_key = :request_key
