-- What onefold_unique_live_show is over: the buyer of a live order, else null. Nothing is stored in the row for it.
ALTER TABLE orders ADD COLUMN onefold_live_user {id}
    GENERATED ALWAYS AS (CASE WHEN status IN ('PENDING_PAYMENT', 'PAID', 'TICKETED') THEN user_id END) VIRTUAL,
    LOCK = NONE
