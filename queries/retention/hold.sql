-- Holds the policy still until the transaction ends, while a plan is saved, so that no record is moved meanwhile that
-- the plan names: 1 row, or 0 where none is set, and nothing is moved at all.
UPDATE onefold_retention SET set_by = set_by WHERE id = 1
