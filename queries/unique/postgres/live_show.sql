-- A buyer has one live order a show. Your own schema: an index of this name on your table.
-- Built online: writes go on meanwhile. It runs outside any transaction.
CREATE UNIQUE INDEX CONCURRENTLY onefold_unique_live_show ON orders (tenant_id, user_id, show_id)
WHERE status IN ('PENDING_PAYMENT', 'PAID', 'TICKETED')
