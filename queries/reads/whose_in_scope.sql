-- Whose the rows of a ledger are that are in a scope by their own columns, and their ids.
SELECT tenant_id, user_id, show_id, {id} AS id
FROM {ledger}
WHERE 1 = 1
  AND tenant_id IN (:tenants) -- when tenants
  AND user_id IN (:users) -- when users
  AND show_id IN (:shows) -- when shows
  AND session_id IN (:sessions) -- when sessions
  AND created_at_us >= :from_us -- when from_us
  AND created_at_us < :to_us -- when to_us
