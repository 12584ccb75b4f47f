-- A whole shard of the ledger of inventory for a plan of everything: one row a hold, the contract's columns in its order, then
-- which shard it is.
SELECT hold_id, tenant_id, order_id, user_id, show_id, session_id, item, quantity, status,
       created_at_us, expires_at_us, version, {shard} AS shard
FROM {ledger}
