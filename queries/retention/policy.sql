-- For how long what is kept: 0 or 1 row.
SELECT * FROM onefold_retention WHERE id = 1
