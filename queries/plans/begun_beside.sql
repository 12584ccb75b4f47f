-- The plans of which the journal's chains tell that they were begun since a time, or under the same freeze as one, but
-- for that one.
SELECT plan_id, freeze_id, made_at_us, body, state, superseded_by, made_by, os_user, login, approval, begun_at_us
FROM onefold_plans AS p
WHERE p.plan_id <> :plan_id
  AND EXISTS (SELECT 1 FROM onefold_journal AS j
              WHERE j.plan_id = p.plan_id AND j.event = 'begun' AND j.chain IS NOT NULL
                AND (j.at_us >= :since_us OR p.freeze_id = :freeze_id))
