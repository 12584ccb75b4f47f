-- The last question about a charge: 0 or 1 row.
SELECT * FROM onefold_outbox
WHERE tenant_id = :tenant_id AND payment_id = :payment_id AND kind = 'QUERY'
ORDER BY requested_at_us DESC, request_key DESC
LIMIT 1
