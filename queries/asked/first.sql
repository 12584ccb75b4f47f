-- Counts the first answer that a freeze has held an effect up.
INSERT INTO onefold_asked (freeze_id, effect, asked, last_at_us) VALUES (:freeze_id, :effect, 1, :now_us)
