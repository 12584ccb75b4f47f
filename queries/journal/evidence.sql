-- The entries that the decision rules ask for, in the order of writing.
SELECT seq, at_us, actor, event, freeze_id, plan_id, intent_id, ledger, tenant_id, row_id,
       from_status, to_status, amount_minor, currency, version, note
FROM onefold_journal
WHERE seq > 0 AND event IN ('asked', 'refused', 'keep-chosen', 'keep-withdrawn')
ORDER BY seq
