-- The sandbox provider's own books: what it knows of charges, and the requests it was sent, each
-- under the caller's idempotency key. No real money moves. Safe to run twice.

CREATE TABLE IF NOT EXISTS onefold_sandbox_charges (
    tenant_id      {id} NOT NULL,
    provider       {id} NOT NULL,
    charge         {id} NOT NULL,
    status         {text} NOT NULL,
    amount_minor   BIGINT NOT NULL,
    refunded_minor BIGINT NOT NULL,
    currency       {text} NOT NULL,
    captured_at_us BIGINT,
    behaviour      {text} NOT NULL,
    PRIMARY KEY (tenant_id, provider, charge)
);

CREATE TABLE IF NOT EXISTS onefold_sandbox_requests (
    idempotency_key {id} NOT NULL PRIMARY KEY,
    tenant_id       {id} NOT NULL,
    provider        {id} NOT NULL,
    charge          {id} NOT NULL,
    kind            {text} NOT NULL,
    amount_minor    BIGINT NOT NULL,
    currency        {text} NOT NULL,
    status          {text} NOT NULL,
    asked           BIGINT NOT NULL,
    made_at_us      BIGINT NOT NULL
);
