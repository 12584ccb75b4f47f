-- Ends the copy of a freeze that could not be made everywhere.
UPDATE onefold_frozen SET ended = 1 WHERE freeze_id = :freeze_id
