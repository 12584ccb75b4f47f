-- The message ledger, in the contract's columns: one row a message, no parameters.
-- A file of this name in your own folder reads your tables instead; what it must heed stands at the head
-- of ledgers/orders.sql.
SELECT message_id, tenant_id, message_key, topic, order_id, user_id, show_id, session_id, status,
       attempts, trace_id, created_at_us, version
FROM messages
