-- By what the rows of the embedded ledgers are looked for. They are made once the rows are there where these are imported
-- into new tables: each row is put into six or seven of them otherwise.

CREATE INDEX IF NOT EXISTS orders_by_buyer ON orders (tenant_id, show_id, user_id);
CREATE INDEX IF NOT EXISTS orders_by_show ON orders (show_id, created_at_us);
CREATE INDEX IF NOT EXISTS orders_by_user ON orders (user_id, created_at_us);
CREATE INDEX IF NOT EXISTS orders_by_session ON orders (session_id);
CREATE INDEX IF NOT EXISTS orders_by_time ON orders (created_at_us);
CREATE INDEX IF NOT EXISTS orders_by_key ON orders (tenant_id, idempotency_key);

CREATE INDEX IF NOT EXISTS payments_by_order ON payments (tenant_id, order_id);
CREATE INDEX IF NOT EXISTS payments_by_charge ON payments (tenant_id, provider_txn_id);
CREATE INDEX IF NOT EXISTS payments_by_buyer ON payments (tenant_id, show_id, user_id);
CREATE INDEX IF NOT EXISTS payments_by_show ON payments (show_id, created_at_us);
CREATE INDEX IF NOT EXISTS payments_by_user ON payments (user_id, created_at_us);
CREATE INDEX IF NOT EXISTS payments_by_session ON payments (session_id);
CREATE INDEX IF NOT EXISTS payments_by_time ON payments (created_at_us);

CREATE INDEX IF NOT EXISTS inventory_by_order ON inventory (tenant_id, order_id);
CREATE INDEX IF NOT EXISTS inventory_by_buyer ON inventory (tenant_id, show_id, user_id);
CREATE INDEX IF NOT EXISTS inventory_by_show ON inventory (show_id, created_at_us);
CREATE INDEX IF NOT EXISTS inventory_by_user ON inventory (user_id, created_at_us);
CREATE INDEX IF NOT EXISTS inventory_by_session ON inventory (session_id);
CREATE INDEX IF NOT EXISTS inventory_by_time ON inventory (created_at_us);

CREATE INDEX IF NOT EXISTS messages_by_order ON messages (tenant_id, order_id);
CREATE INDEX IF NOT EXISTS messages_by_buyer ON messages (tenant_id, show_id, user_id);
CREATE INDEX IF NOT EXISTS messages_by_show ON messages (show_id, created_at_us);
CREATE INDEX IF NOT EXISTS messages_by_user ON messages (user_id, created_at_us);
CREATE INDEX IF NOT EXISTS messages_by_session ON messages (session_id);
CREATE INDEX IF NOT EXISTS messages_by_time ON messages (created_at_us);
