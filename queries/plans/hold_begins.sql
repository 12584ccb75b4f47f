-- Makes those who begin a plan wait for each other until the transaction ends: 1 row. It stands first in its transaction.
UPDATE onefold_counters SET value = value WHERE name = 'fence'
