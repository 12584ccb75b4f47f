-- What onefold_unique_live_key is over: the key of a live order, else null. Nothing is stored in the row for it.
ALTER TABLE orders ADD COLUMN onefold_live_key {id}
    GENERATED ALWAYS AS (CASE WHEN status IN ('PENDING_PAYMENT', 'PAID', 'TICKETED') THEN idempotency_key END) VIRTUAL,
    LOCK = NONE
