-- Adds one entry to the journal.
INSERT INTO onefold_journal (at_us, actor, event, freeze_id, plan_id, intent_id, ledger, tenant_id, row_id,
                             from_status, to_status, amount_minor, currency, version, note)
VALUES (:at_us, :actor, :event, :freeze_id, :plan_id, :intent_id, :ledger, :tenant_id, :row_id,
        :from_status, :to_status, :amount_minor, :currency, :version, :note)
