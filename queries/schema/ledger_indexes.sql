-- By what the rows of the embedded ledgers are looked for. They are made once the rows are there where these are imported
-- into new tables: each row is put into five or six of them otherwise. What tells most rows apart stands first: by what
-- is the same in most of them nothing is sorted or found.

CREATE INDEX IF NOT EXISTS orders_by_buyer ON orders (user_id, show_id, tenant_id);
CREATE INDEX IF NOT EXISTS orders_by_show ON orders (show_id, created_at_us);
CREATE INDEX IF NOT EXISTS orders_by_session ON orders (session_id);
CREATE INDEX IF NOT EXISTS orders_by_time ON orders (created_at_us);
CREATE INDEX IF NOT EXISTS orders_by_key ON orders (idempotency_key, tenant_id);

CREATE INDEX IF NOT EXISTS payments_by_order ON payments (order_id, tenant_id);
CREATE INDEX IF NOT EXISTS payments_by_charge ON payments (provider_txn_id, tenant_id);
CREATE INDEX IF NOT EXISTS payments_by_buyer ON payments (user_id, show_id, tenant_id);
CREATE INDEX IF NOT EXISTS payments_by_show ON payments (show_id, created_at_us);
CREATE INDEX IF NOT EXISTS payments_by_session ON payments (session_id);
CREATE INDEX IF NOT EXISTS payments_by_time ON payments (created_at_us);

CREATE INDEX IF NOT EXISTS inventory_by_order ON inventory (order_id, tenant_id);
CREATE INDEX IF NOT EXISTS inventory_by_buyer ON inventory (user_id, show_id, tenant_id);
CREATE INDEX IF NOT EXISTS inventory_by_show ON inventory (show_id, created_at_us);
CREATE INDEX IF NOT EXISTS inventory_by_session ON inventory (session_id);
CREATE INDEX IF NOT EXISTS inventory_by_time ON inventory (created_at_us);

CREATE INDEX IF NOT EXISTS messages_by_order ON messages (order_id, tenant_id);
CREATE INDEX IF NOT EXISTS messages_by_buyer ON messages (user_id, show_id, tenant_id);
CREATE INDEX IF NOT EXISTS messages_by_show ON messages (show_id, created_at_us);
CREATE INDEX IF NOT EXISTS messages_by_session ON messages (session_id);
CREATE INDEX IF NOT EXISTS messages_by_time ON messages (created_at_us);
