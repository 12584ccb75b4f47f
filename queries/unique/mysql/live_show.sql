-- A buyer has one live order a show. Your own schema: an index of this name on your table, and live_show_column.sql
-- for the column that it is over. Built online: writes go on meanwhile.
CREATE UNIQUE INDEX onefold_unique_live_show ON orders (tenant_id, onefold_live_user, show_id) LOCK = NONE
