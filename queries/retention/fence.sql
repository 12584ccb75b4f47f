-- Holds the policy still until the transaction ends, so that nothing is moved by one that is no longer set, and those
-- who move records wait for each other: 1 row, or 0 where it is another by now.
UPDATE onefold_retention SET set_by = set_by WHERE id = 1 AND version = :version
