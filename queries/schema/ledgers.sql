-- The four ledgers of the embedded schema (contract, section 1). Times are microseconds since 1970
-- in UTC, amounts are in the currency's minor unit, versions are opaque text.
-- {id}, {text}, {long} and {serial} are the database's own types for ids, short text, documents
-- and growing numbers. Safe to run twice.

CREATE TABLE IF NOT EXISTS orders (
    tenant_id       {id} NOT NULL,
    order_id        {id} NOT NULL,
    user_id         {id} NOT NULL,
    show_id         {id} NOT NULL,
    session_id      {id},
    idempotency_key {id},
    item            {id},
    quantity        BIGINT NOT NULL,
    amount_minor    BIGINT NOT NULL,
    currency        {text} NOT NULL,
    status          {text} NOT NULL,
    source          {text},
    trace_id        {text},
    created_at_us   BIGINT NOT NULL,
    version         {id} NOT NULL,
    PRIMARY KEY (tenant_id, order_id)
);
CREATE INDEX IF NOT EXISTS orders_by_buyer ON orders (tenant_id, show_id, user_id);
CREATE INDEX IF NOT EXISTS orders_by_show ON orders (show_id, created_at_us);
CREATE INDEX IF NOT EXISTS orders_by_user ON orders (user_id, created_at_us);
CREATE INDEX IF NOT EXISTS orders_by_session ON orders (session_id);
CREATE INDEX IF NOT EXISTS orders_by_time ON orders (created_at_us);
CREATE INDEX IF NOT EXISTS orders_by_key ON orders (tenant_id, idempotency_key);

CREATE TABLE IF NOT EXISTS payments (
    tenant_id       {id} NOT NULL,
    payment_id      {id} NOT NULL,
    order_id        {id},
    user_id         {id} NOT NULL,
    show_id         {id} NOT NULL,
    session_id      {id},
    amount_minor    BIGINT NOT NULL,
    refunded_minor  BIGINT NOT NULL,
    currency        {text} NOT NULL,
    provider        {id} NOT NULL,
    provider_txn_id {id},
    status          {text} NOT NULL,
    created_at_us   BIGINT NOT NULL,
    captured_at_us  BIGINT,
    version         {id} NOT NULL,
    PRIMARY KEY (tenant_id, payment_id)
);
CREATE INDEX IF NOT EXISTS payments_by_order ON payments (tenant_id, order_id);
CREATE INDEX IF NOT EXISTS payments_by_charge ON payments (tenant_id, provider_txn_id);
CREATE INDEX IF NOT EXISTS payments_by_buyer ON payments (tenant_id, show_id, user_id);
CREATE INDEX IF NOT EXISTS payments_by_show ON payments (show_id, created_at_us);
CREATE INDEX IF NOT EXISTS payments_by_user ON payments (user_id, created_at_us);
CREATE INDEX IF NOT EXISTS payments_by_session ON payments (session_id);
CREATE INDEX IF NOT EXISTS payments_by_time ON payments (created_at_us);

CREATE TABLE IF NOT EXISTS inventory (
    tenant_id       {id} NOT NULL,
    hold_id         {id} NOT NULL,
    order_id        {id},
    user_id         {id} NOT NULL,
    show_id         {id} NOT NULL,
    session_id      {id},
    item            {id},
    quantity        BIGINT NOT NULL,
    status          {text} NOT NULL,
    created_at_us   BIGINT NOT NULL,
    expires_at_us   BIGINT,
    version         {id} NOT NULL,
    PRIMARY KEY (tenant_id, hold_id)
);
CREATE INDEX IF NOT EXISTS inventory_by_order ON inventory (tenant_id, order_id);
CREATE INDEX IF NOT EXISTS inventory_by_buyer ON inventory (tenant_id, show_id, user_id);
CREATE INDEX IF NOT EXISTS inventory_by_show ON inventory (show_id, created_at_us);
CREATE INDEX IF NOT EXISTS inventory_by_user ON inventory (user_id, created_at_us);
CREATE INDEX IF NOT EXISTS inventory_by_session ON inventory (session_id);
CREATE INDEX IF NOT EXISTS inventory_by_time ON inventory (created_at_us);

CREATE TABLE IF NOT EXISTS messages (
    tenant_id       {id} NOT NULL,
    message_id      {id} NOT NULL,
    message_key     {id},
    topic           {id} NOT NULL,
    order_id        {id},
    user_id         {id},
    show_id         {id},
    session_id      {id},
    status          {text} NOT NULL,
    attempts        BIGINT NOT NULL,
    trace_id        {text},
    created_at_us   BIGINT NOT NULL,
    version         {id} NOT NULL,
    PRIMARY KEY (tenant_id, message_id)
);
CREATE INDEX IF NOT EXISTS messages_by_order ON messages (tenant_id, order_id);
CREATE INDEX IF NOT EXISTS messages_by_buyer ON messages (tenant_id, show_id, user_id);
CREATE INDEX IF NOT EXISTS messages_by_show ON messages (show_id, created_at_us);
CREATE INDEX IF NOT EXISTS messages_by_user ON messages (user_id, created_at_us);
CREATE INDEX IF NOT EXISTS messages_by_session ON messages (session_id);
CREATE INDEX IF NOT EXISTS messages_by_time ON messages (created_at_us);
