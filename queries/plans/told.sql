-- What the journal's chains tell of a plan's making: 1 row, or 0.
SELECT note FROM onefold_journal WHERE plan_id = :plan_id AND event = 'planned' AND chain IS NOT NULL ORDER BY seq LIMIT 1
