-- Removes an index of ours, online.
DROP INDEX CONCURRENTLY {name}
