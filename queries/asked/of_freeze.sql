-- How often services were told that an effect is frozen, and when last.
SELECT effect, asked, last_at_us FROM onefold_asked WHERE freeze_id = :freeze_id ORDER BY effect
