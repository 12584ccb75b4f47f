-- A whole ledger.
SELECT * FROM {ledger}
