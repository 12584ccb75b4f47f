-- A whole shard of the ledger of messages for a plan of everything: one row a message, the contract's columns in its order, then
-- which shard it is.
SELECT message_id, tenant_id, message_key, topic, order_id, user_id, show_id, session_id, status,
       attempts, trace_id, created_at_us, version, {shard} AS shard
FROM {ledger}
