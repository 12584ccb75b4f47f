-- One row of a ledger in one of some statuses, in the ledger's own words; none where there is none.
SELECT * FROM {ledger}
WHERE status IN (:statuses)
LIMIT 1
