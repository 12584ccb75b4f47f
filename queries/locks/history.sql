-- The lock history of a site, out of the site's own SELECT, by time. Any number of rows.
SELECT lock_key, event, owner, token, lease_ms, at_us, node, result
FROM {history}
ORDER BY at_us, lock_key, event, owner
