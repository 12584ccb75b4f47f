-- What a ledger's database knows of freezes: its own copy of each enforced one, by which its triggers judge.
-- Made in every database that holds a ledger. Types as in ledgers.sql; {now_us} is the database's clock in
-- microseconds since 1970, {lease_until} the end of a lease as its own type of time. Safe to run twice.

-- One row. A guarded write holds it shared until its transaction ends; whoever changes a copy holds it alone, so a
-- freeze is known to every write that comes after it and waits for those that came before. `frozen` counts the
-- copies that nobody has ended: with 0, a trigger looks no further.
CREATE TABLE IF NOT EXISTS onefold_gate (
    id         BIGINT NOT NULL PRIMARY KEY,
    generation BIGINT NOT NULL,
    frozen     BIGINT NOT NULL
);

-- 1 is yes, 0 no. `paid` is order → PAID, which is stopped only where the payment ledger is in this database.
-- A list that is null names nothing and does not narrow; its values are in onefold_frozen_scope.
CREATE TABLE IF NOT EXISTS onefold_frozen (
    freeze_id      {id} NOT NULL PRIMARY KEY,
    token          BIGINT NOT NULL,
    owner          {text} NOT NULL,
    reason         {long} NOT NULL,
    auto_payment   BIGINT NOT NULL,
    paid           BIGINT NOT NULL,
    ticketing      BIGINT NOT NULL,
    stock_release  BIGINT NOT NULL,
    messages       BIGINT NOT NULL,
    tenants        {long},
    users          {long},
    shows          {long},
    sessions       {long},
    topics         {long},
    from_us        BIGINT,
    to_us          BIGINT,
    narrowing      BIGINT NOT NULL,
    lease_until_us BIGINT NOT NULL,
    ended          BIGINT NOT NULL
);

-- What a copy names. Kinds: tenant, user, show, session, topic; captured, a payment status that says so; and of a
-- narrowed freeze (whose `narrowing` is not 0) the rows that it still holds, by their ledger and tenant.
CREATE TABLE IF NOT EXISTS onefold_frozen_scope (
    freeze_id {id} NOT NULL,
    kind      {id} NOT NULL,
    narrowing BIGINT NOT NULL,
    tenant_id {id} NOT NULL,
    value     {id} NOT NULL,
    PRIMARY KEY (freeze_id, kind, narrowing, tenant_id, value)
);

-- Passes of our own moves. A row is added and removed within one transaction, so it is there for nobody else.
CREATE TABLE IF NOT EXISTS onefold_pass (
    token         {id} NOT NULL PRIMARY KEY,
    connection_id BIGINT
);

-- For services that ask in SQL: what is enforced at this moment.
{create_view} onefold_live_freezes AS
SELECT freeze_id, owner, reason, auto_payment, ticketing, stock_release, messages,
       tenants, users, shows, sessions, topics, from_us, to_us,
       CASE WHEN narrowing = 0 THEN 0 ELSE 1 END AS narrowed, {lease_until} AS lease_until, lease_until_us
FROM onefold_frozen
WHERE ended = 0 AND lease_until_us > {now_us};

INSERT INTO onefold_gate (id, generation, frozen)
SELECT 1, 0, 0 FROM (SELECT COUNT(*) AS n FROM onefold_gate WHERE id = 1) AS g WHERE g.n = 0;
