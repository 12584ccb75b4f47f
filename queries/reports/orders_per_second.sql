-- The orders in a scope by the second and by who wrote them, counted here since there may be millions: one row
-- for each second and source.
SELECT created_at_us - created_at_us % 1000000 AS second_us, source, COUNT(*) AS n
FROM {ledger}
WHERE 1 = 1
  AND tenant_id IN (:tenants) -- when tenants
  AND user_id IN (:users) -- when users
  AND show_id IN (:shows) -- when shows
  AND session_id IN (:sessions) -- when sessions
  AND created_at_us >= :from_us -- when from_us
  AND created_at_us < :to_us -- when to_us
GROUP BY second_us, source
ORDER BY second_us, source
