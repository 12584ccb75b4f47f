-- The rows of a ledger that name one of some orders of a tenant; of the order ledger, these orders.
SELECT * FROM {ledger}
WHERE tenant_id = :tenant_id AND order_id IN (:orders)
