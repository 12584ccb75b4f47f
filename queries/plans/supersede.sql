-- Puts a newer plan in the place of an open one: 1 row or 0.
UPDATE onefold_plans SET state = 'SUPERSEDED', superseded_by = :superseded_by WHERE plan_id = :plan_id AND state = 'OPEN'
