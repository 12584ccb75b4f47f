-- Who approved a decision, the first first.
SELECT digest, os_user, login, plan_id, actor, because, at_us
FROM onefold_approvals
WHERE digest = :digest
ORDER BY at_us, os_user, login
