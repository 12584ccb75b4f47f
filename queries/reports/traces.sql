-- The trace ids of the orders, or of the messages, in a scope: each once.
SELECT DISTINCT trace_id
FROM {ledger}
WHERE trace_id IS NOT NULL
  AND tenant_id IN (:tenants) -- when tenants
  AND user_id IN (:users) -- when users
  AND show_id IN (:shows) -- when shows
  AND session_id IN (:sessions) -- when sessions
  AND created_at_us >= :from_us -- when from_us
  AND created_at_us < :to_us -- when to_us
ORDER BY trace_id
