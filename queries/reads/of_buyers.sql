-- The rows of a ledger that belong to some users of one tenant and show.
SELECT * FROM {ledger}
WHERE tenant_id = :tenant_id AND show_id = :show_id AND user_id IN (:users)
