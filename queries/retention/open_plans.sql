-- The plans that may still be applied.
SELECT plan_id FROM onefold_plans WHERE state = 'OPEN' ORDER BY plan_id
