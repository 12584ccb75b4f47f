-- How many records there are in each tier and state, how many of them are held past their lease, and how many bytes
-- what they say takes.
SELECT retention, state, COUNT(*) AS records,
       CAST(SUM(CASE WHEN state = 'PROCESSING' AND lease_until_us <= {now_us} THEN 1 ELSE 0 END) AS {integer}) AS lapsed,
       CAST(SUM(OCTET_LENGTH(tenant_id) + OCTET_LENGTH(idempotency_key) + OCTET_LENGTH(digest)
                + OCTET_LENGTH(digest_parts) + OCTET_LENGTH(state) + OCTET_LENGTH(owner)
                + COALESCE(OCTET_LENGTH(result_ref), 0) + COALESCE(OCTET_LENGTH(result), 0)
                + COALESCE(OCTET_LENGTH(note), 0) + OCTET_LENGTH(retention) + 80) AS {integer}) AS bytes
FROM onefold_idempotency
GROUP BY retention, state
ORDER BY retention, state
