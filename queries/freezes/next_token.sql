-- Takes the next fencing token. First in its transaction, it makes those who freeze wait for each other.
UPDATE onefold_counters SET value = value + 1 WHERE name = 'fence'
