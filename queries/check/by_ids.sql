-- Rows of a ledger by their ids, of whatever tenant.
SELECT * FROM {ledger}
WHERE {id} IN (:ids)
