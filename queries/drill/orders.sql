-- What a round left: the orders of its key.
SELECT order_id FROM orders
WHERE tenant_id = :tenant_id AND idempotency_key = :idempotency_key
ORDER BY order_id
