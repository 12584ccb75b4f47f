-- Some rows of a ledger, to look at: any :limit of them.
SELECT * FROM {ledger}
LIMIT :limit
