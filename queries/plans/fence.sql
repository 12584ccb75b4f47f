-- Holds a plan still until the transaction ends, so that nobody puts a newer one in its place meanwhile: 1 row, or 0
-- where one has been put there, or the plan was never begun.
UPDATE onefold_plans SET made_by = made_by
WHERE plan_id = :plan_id AND state <> 'SUPERSEDED' AND begun_at_us IS NOT NULL
