-- The ledger of inventory holds, in the contract's columns: one row a hold, no parameters.
-- A file of this name in your own folder reads your tables instead; what it must heed stands at the head
-- of ledgers/orders.sql.
SELECT hold_id, tenant_id, order_id, user_id, show_id, session_id, item, quantity, status,
       created_at_us, expires_at_us, version
FROM inventory
