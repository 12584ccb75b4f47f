-- Who approved a decision, the first first, each with what the journal's chains tell of a word at that time.
SELECT a.digest, a.os_user, a.login, a.plan_id, a.actor, a.because, a.at_us, j.note AS told
FROM onefold_approvals AS a
JOIN onefold_journal AS j
  ON j.plan_id = a.plan_id AND j.actor = a.actor AND j.at_us = a.at_us AND j.event = 'approved' AND j.chain IS NOT NULL
WHERE a.digest = :digest
ORDER BY a.at_us, a.os_user, a.login
