-- The ids of a ledger's rows that name one of some orders of a tenant.
SELECT {id} AS id FROM {ledger}
WHERE tenant_id = :tenant_id AND order_id IN (:orders)
