-- The payment ledger, in the contract's columns: one row a payment, no parameters.
-- A file of this name in your own folder reads your tables instead; what it must heed stands at the head
-- of ledgers/orders.sql.
SELECT payment_id, tenant_id, order_id, user_id, show_id, session_id, amount_minor, refunded_minor,
       currency, provider, provider_txn_id, status, created_at_us, captured_at_us, version
FROM payments
