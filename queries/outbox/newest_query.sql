-- The last question about a charge: 0 or 1 row.
SELECT request_key, kind, tenant_id, payment_id, provider, provider_txn_id, amount_minor, currency, requested_at_us, state,
       provider_ref, answered_at_us, note, charge_status, charge_amount_minor, charge_refunded_minor, charge_captured_at_us,
       refund_refused
FROM onefold_outbox
WHERE tenant_id = :tenant_id AND payment_id = :payment_id AND kind = 'QUERY'
ORDER BY requested_at_us DESC, request_key DESC
LIMIT 1
