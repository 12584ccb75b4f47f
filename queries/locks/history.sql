-- The lock history of a site, out of the site's own SELECT, by time. Any number of rows. Which of one instant came first
-- is not for the table to say: the audit puts them in order, as it does those of a file.
SELECT lock_key, event, owner, token, lease_ms, at_us, node, result
FROM {history}
ORDER BY at_us, lock_key, event, owner
