-- One row an idempotency key: who holds it, until when by this database's clock, and what came of it. Its request
-- is kept as digests alone. The journal's database has it for `once`, that of the orders for the service that takes
-- them. Types as in ledgers.sql. Safe to run twice.

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
