-- Of the live orders of a tenant one carries a key; closed ones keep theirs. Your own schema: an index of this name on
-- your table, over what your orders call live, and live_key_column.sql for the column that it is over.
-- Built online: writes go on meanwhile.
CREATE UNIQUE INDEX onefold_unique_live_key ON orders (tenant_id, onefold_live_key) LOCK = NONE
