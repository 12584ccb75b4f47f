-- A whole shard of the ledger of payments for a plan of everything: one row a payment, the contract's columns in its order, then
-- which shard it is.
SELECT payment_id, tenant_id, order_id, user_id, show_id, session_id, amount_minor, refunded_minor,
       currency, provider, provider_txn_id, status, created_at_us, captured_at_us, version, {shard} AS shard
FROM {ledger}
