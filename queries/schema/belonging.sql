-- To which journal a database belongs, in every database that has a ledger or the journal. Types as in ledgers.sql.
-- Safe to run twice.

-- One row, written once by `onefold init`. `journal` is the public name of a journal; `is_home` is 1 where the journal
-- itself is in this database, else 0; `label` says where it was reached when the row was written.
CREATE TABLE IF NOT EXISTS onefold_belongs (
    id      BIGINT NOT NULL PRIMARY KEY,
    journal {id} NOT NULL,
    is_home BIGINT NOT NULL,
    label   {long} NOT NULL
);
