-- Marks an open plan as ended: 1 row or 0.
UPDATE onefold_plans SET state = 'ENDED' WHERE plan_id = :plan_id AND state = 'OPEN'
