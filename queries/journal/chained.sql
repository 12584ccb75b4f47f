-- The entries that stand in chains, chain by chain, each in its order.
SELECT seq, chain, position, previous_hash, hash, at_us, actor, event, freeze_id, plan_id, intent_id, ledger,
       tenant_id, row_id, from_status, to_status, amount_minor, currency, version, note
FROM onefold_journal
WHERE chain IS NOT NULL
ORDER BY chain, position
