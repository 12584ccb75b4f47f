-- Of the live orders of a tenant one carries a key; closed ones keep theirs. Your own schema: an index of this name on
-- your table, over what your orders call live.
-- Built online: writes go on meanwhile. It runs outside any transaction.
CREATE UNIQUE INDEX CONCURRENTLY onefold_unique_live_key ON orders (tenant_id, idempotency_key)
WHERE idempotency_key IS NOT NULL AND status IN ('PENDING_PAYMENT', 'PAID', 'TICKETED')
