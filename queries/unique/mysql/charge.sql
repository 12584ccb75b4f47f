-- One row a charge. Your own schema: an index of this name on your table.
-- Built online: writes go on meanwhile.
CREATE UNIQUE INDEX onefold_unique_charge ON payments (tenant_id, provider, provider_txn_id) LOCK = NONE
