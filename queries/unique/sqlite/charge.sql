-- One row a charge. Your own schema: an index of this name on your table.
CREATE UNIQUE INDEX onefold_unique_charge ON payments (tenant_id, provider, provider_txn_id)
WHERE provider_txn_id IS NOT NULL
