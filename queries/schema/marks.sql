-- Beside a ledger that lives apart from the journal: which of our moves are in it. Types as in ledgers.sql.
-- Safe to run twice.

-- Written with the move itself, so that a run that was killed before the journal heard of it can tell
-- what it did from what somebody else did.
CREATE TABLE IF NOT EXISTS onefold_marks (
    step_key      {id} NOT NULL PRIMARY KEY,
    version_after {id} NOT NULL,
    moved_at_us   BIGINT NOT NULL
);
