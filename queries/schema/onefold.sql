-- onefold's own tables: freezes, plans, steps and the journal beside them. Types as in ledgers.sql.
-- Safe to run twice. A column that came later may be null: tables that were made before get it.

-- One row a counter; adding to it first in a transaction also makes those who do wait for each other.
CREATE TABLE IF NOT EXISTS onefold_counters (
    name  {id} NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS onefold_freezes (
    freeze_id      {id} NOT NULL PRIMARY KEY,
    token          BIGINT NOT NULL,
    owner          {text} NOT NULL,
    reason         {long} NOT NULL,
    scope          {long} NOT NULL,
    effects        {long} NOT NULL,
    topics         {long} NOT NULL,
    mode           {text} NOT NULL,
    narrowed_to    {long},
    state          {text} NOT NULL,
    frozen_at_us   BIGINT NOT NULL,
    lease_until_us BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS onefold_freezes_by_state ON onefold_freezes (state);

-- How often services were told that an effect is frozen.
CREATE TABLE IF NOT EXISTS onefold_asked (
    freeze_id  {id} NOT NULL,
    effect     {text} NOT NULL,
    asked      BIGINT NOT NULL,
    last_at_us BIGINT NOT NULL,
    PRIMARY KEY (freeze_id, effect)
);

CREATE TABLE IF NOT EXISTS onefold_plans (
    plan_id       {id} NOT NULL PRIMARY KEY,
    digest        {text} NOT NULL,
    freeze_id     {id},
    state         {text} NOT NULL,
    superseded_by {id},
    made_at_us    BIGINT NOT NULL,
    made_by       {text} NOT NULL,
    os_user       {text},
    login         {text},
    approval      {long},
    begun_at_us   BIGINT,
    body          {long} NOT NULL
);
CREATE INDEX IF NOT EXISTS onefold_plans_by_freeze ON onefold_plans (freeze_id, state);
CREATE INDEX IF NOT EXISTS onefold_plans_by_state ON onefold_plans (state, made_at_us);

-- The intents of plans, some of them a row: there may be a million. What is long is packed: lz4:, and in base64 its
-- length and the block of LZ4.
CREATE TABLE IF NOT EXISTS onefold_plan_parts (
    plan_id {id} NOT NULL,
    part    BIGINT NOT NULL,
    intents {long} NOT NULL,
    PRIMARY KEY (plan_id, part)
);

-- One row a person's word for a decision, whichever plan it stands in.
CREATE TABLE IF NOT EXISTS onefold_approvals (
    digest  {text} NOT NULL,
    os_user {text} NOT NULL,
    login   {text} NOT NULL,
    plan_id {id} NOT NULL,
    actor   {text} NOT NULL,
    because {long} NOT NULL,
    at_us   BIGINT NOT NULL,
    UNIQUE (digest, os_user, login)
);

-- Append-only: which plans need somebody's word, whatever a configuration says; the rule with the highest position stands.
CREATE TABLE IF NOT EXISTS onefold_rules (
    position BIGINT NOT NULL PRIMARY KEY,
    rule     {long} NOT NULL,
    os_user  {text} NOT NULL,
    login    {text} NOT NULL,
    actor    {text} NOT NULL,
    at_us    BIGINT NOT NULL
);

-- Where states change. The key belongs to the effect, so whoever wants the same effect meets here.
CREATE TABLE IF NOT EXISTS onefold_steps (
    step_key       {id} NOT NULL PRIMARY KEY,
    digest         {text} NOT NULL,
    plan_id        {id} NOT NULL,
    intent_id      {id} NOT NULL,
    position       BIGINT NOT NULL,
    ledger         {text} NOT NULL,
    tenant_id      {id} NOT NULL,
    row_id         {id} NOT NULL,
    from_status    {text} NOT NULL,
    to_status      {text} NOT NULL,
    amount_minor   BIGINT,
    currency       {text},
    provider_key   {text},
    state          {text} NOT NULL,
    sent           BIGINT NOT NULL,
    owner          {text},
    token          BIGINT,
    lease_until_us BIGINT,
    version_before {id},
    version_after  {id},
    refunded_before_minor BIGINT,
    refunded_after_minor  BIGINT,
    note           {long},
    sent_at_us     BIGINT,
    provider_ref   {long},
    sent_through   {text},
    updated_at_us  BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS onefold_steps_by_plan ON onefold_steps (plan_id, position);
CREATE INDEX IF NOT EXISTS onefold_steps_by_row ON onefold_steps (row_id, tenant_id);
CREATE INDEX IF NOT EXISTS onefold_steps_by_state ON onefold_steps (state);

-- Append-only: who, when, what, from where to where, and why. Each entry carries the hash of the one before it in
-- its chain; those from before there were chains have none.
CREATE TABLE IF NOT EXISTS onefold_journal (
    seq          {serial},
    at_us        BIGINT NOT NULL,
    actor        {text} NOT NULL,
    event        {text} NOT NULL,
    freeze_id    {id},
    plan_id      {id},
    intent_id    {id},
    ledger       {text},
    tenant_id    {id},
    row_id       {id},
    from_status  {text},
    to_status    {text},
    amount_minor BIGINT,
    currency     {text},
    version      {id},
    note         {long},
    chain         {id},
    position      BIGINT,
    previous_hash {text},
    hash          {text}
);
CREATE UNIQUE INDEX IF NOT EXISTS onefold_journal_by_chain ON onefold_journal (chain, position);
CREATE INDEX IF NOT EXISTS onefold_journal_by_row ON onefold_journal (row_id, tenant_id);
CREATE INDEX IF NOT EXISTS onefold_journal_by_plan ON onefold_journal (plan_id);
CREATE INDEX IF NOT EXISTS onefold_journal_by_intent ON onefold_journal (intent_id);
CREATE INDEX IF NOT EXISTS onefold_journal_by_event ON onefold_journal (event);

-- Append-only: which chains have ended, and with what. The heads are a chain of their own.
CREATE TABLE IF NOT EXISTS onefold_heads (
    position      BIGINT NOT NULL PRIMARY KEY,
    previous_hash {text} NOT NULL,
    hash          {text} NOT NULL,
    chain         {id} NOT NULL UNIQUE,
    last_position BIGINT NOT NULL,
    last_hash     {text} NOT NULL,
    at_us         BIGINT NOT NULL,
    actor         {text} NOT NULL
);

-- What onefold made up for itself and must not show: the key of the pseudonyms in redacted reports.
CREATE TABLE IF NOT EXISTS onefold_secrets (
    name  {id} NOT NULL PRIMARY KEY,
    value {text} NOT NULL
);
