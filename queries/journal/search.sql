-- The journal in the order of writing: all of it, or what is of one plan, of one
-- order and every intent it was in, or of one tenant. Where runs ended tells nothing of them.
SELECT seq, at_us, actor, event, freeze_id, plan_id, intent_id, ledger, tenant_id, row_id,
       from_status, to_status, amount_minor, currency, version, note
FROM onefold_journal
WHERE event <> 'ended'
  AND plan_id = :plan_id -- when plan_id
  AND (ledger = 'orders' AND row_id = :order_id -- when order_id
       OR intent_id IN (:intents) -- when order_id
       OR intent_id IN (SELECT intent_id FROM onefold_journal WHERE ledger = 'orders' AND row_id = :order_id)) -- when order_id
  AND (tenant_id = :tenant_id -- when tenant_id
       OR tenant_id IS NULL AND intent_id IN (SELECT intent_id FROM onefold_journal WHERE tenant_id = :tenant_id)) -- when tenant_id
ORDER BY seq
