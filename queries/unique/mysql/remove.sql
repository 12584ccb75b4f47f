-- Removes an index of ours, online.
ALTER TABLE {place} DROP INDEX {name}, LOCK = NONE
