-- Who bought what under some order ids: (tenant, user, show) of each order.
SELECT tenant_id, user_id, show_id
FROM {ledger}
WHERE order_id IN (:orders)
  AND tenant_id IN (:tenants) -- when tenants
