-- A whole shard of the ledger of orders for a plan of everything: one row an order, the contract's columns in its order, then
-- which shard it is.
SELECT order_id, tenant_id, user_id, show_id, session_id, idempotency_key, item, quantity,
       amount_minor, currency, status, source, trace_id, created_at_us, version, {shard} AS shard
FROM {ledger}
