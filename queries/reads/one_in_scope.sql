-- One row of a ledger that is in a scope by its own columns, if there is any.
SELECT *
FROM {ledger}
WHERE 1 = 1
  AND tenant_id IN (:tenants) -- when tenants
  AND user_id IN (:users) -- when users
  AND show_id IN (:shows) -- when shows
  AND session_id IN (:sessions) -- when sessions
  AND created_at_us >= :from_us -- when from_us
  AND created_at_us < :to_us -- when to_us
LIMIT 1
