-- How many copies of freezes nobody has ended: one row, where `onefold init` was run on this database.
SELECT frozen FROM onefold_gate WHERE id = 1
