-- Requests about some payments of a tenant that are not refused, the oldest first.
SELECT * FROM onefold_outbox
WHERE tenant_id = :tenant_id AND payment_id IN (:payment_ids) AND kind IN ('REFUND', 'VOID') AND state <> 'REFUSED'
ORDER BY requested_at_us, request_key
