-- Removes the column that an index of ours was over; it stores nothing.
ALTER TABLE {place} DROP COLUMN {name}, LOCK = NONE
