-- How many keys are archived, how many of them were not seen for longer than the archive's window, and how many bytes
-- their fingerprints take: 1 row.
SELECT COUNT(*) AS records,
       CAST(COALESCE(SUM(CASE WHEN last_seen_us <= {now_us} - :window_us THEN 1 ELSE 0 END), 0) AS {integer}) AS past,
       CAST(COALESCE(SUM(OCTET_LENGTH(key_sha256) + OCTET_LENGTH(digest) + OCTET_LENGTH(state)
                         + COALESCE(OCTET_LENGTH(result_ref), 0) + 32), 0) AS {integer}) AS bytes
FROM onefold_idempotency_archive
