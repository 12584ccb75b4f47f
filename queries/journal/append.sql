-- Adds entries to the journal, one row each of :rows, at its place in its chain; a place that is taken is a unique violation.
INSERT INTO onefold_journal (chain, position, previous_hash, hash,
                             at_us, actor, event, freeze_id, plan_id, intent_id, ledger, tenant_id, row_id,
                             from_status, to_status, amount_minor, currency, version, note)
VALUES :rows
