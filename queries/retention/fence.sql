-- Holds the policy still until the transaction ends, so that nothing is moved by one that is no longer set, and those
-- who move records or save plans wait for each other: 1 row, or 0 where it is another by now. It stands first in its
-- transaction: what is open is read after it.
UPDATE onefold_retention SET set_by = set_by WHERE id = 1 AND version = :version
