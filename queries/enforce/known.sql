-- A ledger's rows as the check knows them: {of} is orders or payments, {ledger} the ledger's SELECT from ledgers/, or
-- that from enforce/nowhere_….sql where the ledger is not in this database.
CREATE VIEW onefold_guard_known_{of}_{version} AS
{ledger}
