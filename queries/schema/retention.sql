-- For how long what is kept of idempotency keys, wherever they are. Types as in ledgers.sql. Safe to run twice.

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
