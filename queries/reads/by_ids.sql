-- Rows of a ledger by their own ids.
SELECT * FROM {ledger}
WHERE tenant_id = :tenant_id AND {id} IN (:ids)
