-- One plan: 0 or 1 row.
SELECT body, state, superseded_by, made_by, os_user, login, approval, begun_at_us FROM onefold_plans WHERE plan_id = :plan_id
