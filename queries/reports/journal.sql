-- The journal of one plan and of its freeze, a page of it: what comes after an entry, in the order of writing;
-- at most :page rows.
SELECT seq, at_us, actor, event, freeze_id, plan_id, intent_id, ledger, tenant_id, row_id,
       from_status, to_status, amount_minor, currency, version, note
FROM onefold_journal
WHERE seq > :after
  AND (plan_id = :plan_id
       OR plan_id IS NULL AND freeze_id = :freeze_id -- when freeze_id
      )
ORDER BY seq
LIMIT :page
