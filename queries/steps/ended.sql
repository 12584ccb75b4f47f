-- Of every step that has ended (done, already so, refused by the provider for good, or given up) what the rules ask for;
-- but those of one plan, or so many at most.
SELECT ledger, tenant_id, row_id, from_status, to_status, state, refunded_before_minor, refunded_after_minor
FROM onefold_steps
WHERE state IN ('DONE', 'SKIPPED', 'FAILED', 'WITHDRAWN')
  AND plan_id <> :but_plan -- when but_plan
LIMIT :most -- when most
