-- The four ledgers of the embedded schema (contract, section 1). Times are microseconds since 1970
-- in UTC, amounts are in the currency's minor unit, versions are opaque text.
-- {id}, {text}, {long} and {serial} are the database's own types for ids, short text, documents
-- and growing numbers; {with_room} leaves room for moved rows where the database would else put each
-- into all indexes anew. Safe to run twice.

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
){with_room};

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
){with_room};

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
){with_room};

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
){with_room};
