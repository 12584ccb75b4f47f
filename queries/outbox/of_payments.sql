-- Requests about some payments of a tenant that are not refused, the oldest first.
SELECT request_key, kind, tenant_id, payment_id, provider, provider_txn_id, amount_minor, currency, requested_at_us, state,
       provider_ref, answered_at_us, note, charge_status, charge_amount_minor, charge_refunded_minor, charge_captured_at_us,
       refund_refused
FROM onefold_outbox
WHERE tenant_id = :tenant_id AND payment_id IN (:payment_ids) AND kind IN ('REFUND', 'VOID') AND state <> 'REFUSED'
ORDER BY requested_at_us, request_key
