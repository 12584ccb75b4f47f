-- Who approved a decision, the first first; only words of which the journal's chains tell.
SELECT a.digest, a.os_user, a.login, a.plan_id, a.actor, a.because, a.at_us
FROM onefold_approvals AS a
WHERE a.digest = :digest
  AND EXISTS (SELECT 1 FROM onefold_journal AS j
              WHERE j.event = 'approved' AND j.plan_id = a.plan_id AND j.actor = a.actor AND j.at_us = a.at_us
                AND j.chain IS NOT NULL)
ORDER BY a.at_us, a.os_user, a.login
