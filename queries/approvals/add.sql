-- Adds somebody's word for one decision: it is there once a person.
INSERT INTO onefold_approvals (digest, os_user, login, plan_id, actor, because, at_us)
VALUES (:digest, :os_user, :login, :plan_id, :actor, :because, :at_us)
