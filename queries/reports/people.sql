-- Who stands in the rows of a ledger in a scope: users and sessions, each pair once.
SELECT DISTINCT user_id, session_id
FROM {ledger}
WHERE 1 = 1
  AND tenant_id IN (:tenants) -- when tenants
  AND user_id IN (:users) -- when users
  AND show_id IN (:shows) -- when shows
  AND session_id IN (:sessions) -- when sessions
  AND created_at_us >= :from_us -- when from_us
  AND created_at_us < :to_us -- when to_us
ORDER BY user_id, session_id
