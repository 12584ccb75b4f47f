-- Counts one more answer that a freeze has held an effect up: 1 row, or 0 where it is the first.
UPDATE onefold_asked SET asked = asked + 1, last_at_us = :now_us WHERE freeze_id = :freeze_id AND effect = :effect
