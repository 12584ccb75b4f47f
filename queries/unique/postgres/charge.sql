-- One row a charge. Your own schema: an index of this name on your table.
-- Built online: writes go on meanwhile. It runs outside any transaction.
CREATE UNIQUE INDEX CONCURRENTLY onefold_unique_charge ON payments (tenant_id, provider, provider_txn_id)
WHERE provider_txn_id IS NOT NULL
