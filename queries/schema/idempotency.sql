-- One row an idempotency key: who holds it, until when by this database's clock, and what came of it. Its request
-- is kept as digests alone. Then what keys are about, and the fingerprints of those whose records are archived. The
-- journal's database has them for `once`, that of the orders for the service that takes them. The archive stands
-- last: where it is, the others are. Types as in ledgers.sql. Safe to run twice.

CREATE TABLE IF NOT EXISTS onefold_idempotency (
    tenant_id       {id} NOT NULL,
    idempotency_key {id} NOT NULL,
    digest          {text} NOT NULL,
    digest_parts    {long} NOT NULL,
    state           {text} NOT NULL,
    owner           {text} NOT NULL,
    lease_until_us  BIGINT NOT NULL,
    token           BIGINT NOT NULL,
    version         BIGINT NOT NULL,
    may_have_run    BIGINT NOT NULL,
    result_ref      {text},
    exit_code       BIGINT,
    result          {long},
    note            {long},
    attempts        BIGINT NOT NULL,
    first_seen_us   BIGINT NOT NULL,
    last_seen_us    BIGINT NOT NULL,
    keep_for_us     BIGINT NOT NULL,
    retention       {text} NOT NULL,
    UNIQUE (tenant_id, idempotency_key)
);
CREATE INDEX IF NOT EXISTS onefold_idempotency_by_state ON onefold_idempotency (state, last_seen_us);
CREATE INDEX IF NOT EXISTS onefold_idempotency_by_tier ON onefold_idempotency (retention, last_seen_us);

-- One row an order or payment that a key is about: `ledger` is orders or payments. It stays when the record of
-- the key goes into the archive.
CREATE TABLE IF NOT EXISTS onefold_idempotency_names (
    tenant_id       {id} NOT NULL,
    idempotency_key {id} NOT NULL,
    ledger          {text} NOT NULL,
    row_id          {id} NOT NULL,
    named_at_us     BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, idempotency_key, ledger, row_id)
);
CREATE INDEX IF NOT EXISTS onefold_idempotency_names_by_row ON onefold_idempotency_names (tenant_id, ledger, row_id);

-- One row a key that is done and whose record has left onefold_idempotency. Such a key is never run again.
-- `key_sha256` is the SHA-256, as 64 hex digits, over the tenant and the key, each with its length in bytes before
-- it as eight bytes, the highest first.
CREATE TABLE IF NOT EXISTS onefold_idempotency_archive (
    key_sha256     {id} NOT NULL PRIMARY KEY,
    digest         {text} NOT NULL,
    state          {text} NOT NULL,
    exit_code      BIGINT,
    result_ref     {text},
    first_seen_us  BIGINT NOT NULL,
    last_seen_us   BIGINT NOT NULL,
    archived_at_us BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS onefold_idempotency_archive_by_age ON onefold_idempotency_archive (last_seen_us);
