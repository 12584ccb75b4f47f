-- A number that is the same in two looks of one connection only where no other has committed between them: one row.
PRAGMA data_version
