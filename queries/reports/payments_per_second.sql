-- The payments in a scope by the second of their capture and by their status, counted here since there may be
-- millions: one row for each second and status.
SELECT COALESCE(captured_at_us, created_at_us) - COALESCE(captured_at_us, created_at_us) % 1000000 AS second_us,
       status, COUNT(*) AS n
FROM {ledger}
WHERE 1 = 1
  AND tenant_id IN (:tenants) -- when tenants
  AND user_id IN (:users) -- when users
  AND show_id IN (:shows) -- when shows
  AND session_id IN (:sessions) -- when sessions
  AND created_at_us >= :from_us -- when from_us
  AND created_at_us < :to_us -- when to_us
GROUP BY second_us, status
ORDER BY second_us, status
