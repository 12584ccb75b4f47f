-- One plan: 0 or 1 row.
SELECT body, state, superseded_by, made_by FROM onefold_plans WHERE plan_id = :plan_id
