-- To which journal this database belongs: 1 row, or 0 where nothing is said.
SELECT journal, is_home, label FROM onefold_belongs WHERE id = 1
