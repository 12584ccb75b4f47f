-- What is kept of idempotency keys, and for how long: the policy, what keys are about, and the fingerprints of
-- keys whose records are archived. Types as in ledgers.sql. Safe to run twice.

-- One row. Spans are microseconds after a key was last seen; the version grows with every change.
CREATE TABLE IF NOT EXISTS onefold_retention (
    id                BIGINT NOT NULL PRIMARY KEY,
    version           BIGINT NOT NULL,
    client_retry_us   BIGINT NOT NULL,
    queue_us          BIGINT NOT NULL,
    longest_replay_us BIGINT NOT NULL,
    replay_us         BIGINT NOT NULL,
    dispute_us        BIGINT NOT NULL,
    archive_us        BIGINT NOT NULL,
    set_by            {text} NOT NULL,
    set_at_us         BIGINT NOT NULL,
    because           {long}
);

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
CREATE INDEX IF NOT EXISTS onefold_idempotency_by_tier ON onefold_idempotency (retention, last_seen_us);
