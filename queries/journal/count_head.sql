-- Counts one more head. First in its transaction, it makes those who end runs wait for each other.
UPDATE onefold_counters SET value = value + 1 WHERE name = 'heads'
