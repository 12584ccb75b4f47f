-- Says that a plan is begun: 1 row, or 0 where it is already, or may not be.
UPDATE onefold_plans SET begun_at_us = :begun_at_us
WHERE plan_id = :plan_id AND state = 'OPEN' AND begun_at_us IS NULL
