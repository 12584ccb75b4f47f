-- Says that a drill is still at work: 1 row.
UPDATE {marker} SET lease_until_us = {now_us} + :lease_us WHERE name = :name
