-- Removes an index of ours.
DROP INDEX {name}
