-- The lines of an access log within a time, by time: around the own SELECT of a site. Any number of rows.
SELECT at_us, request_id, tenant_id, source, attempt, status, latency_ms, trace_id, idempotency_key, user_id,
       show_id, order_id
FROM {access}
WHERE at_us >= :from_us AND at_us <= :to_us
ORDER BY at_us, request_id, attempt
