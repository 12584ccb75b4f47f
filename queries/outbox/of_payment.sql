-- Requests about one payment that are not refused, the oldest first.
SELECT * FROM onefold_outbox
WHERE tenant_id = :tenant_id AND payment_id = :payment_id AND kind IN ('REFUND', 'VOID') AND state <> 'REFUSED'
ORDER BY requested_at_us, request_key
