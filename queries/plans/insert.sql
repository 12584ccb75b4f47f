-- Adds a plan.
INSERT INTO onefold_plans (plan_id, digest, freeze_id, state, made_at_us, made_by, os_user, login, approval, body)
VALUES (:plan_id, :digest, :freeze_id, :state, :made_at_us, :made_by, :os_user, :login, :approval, :body)
