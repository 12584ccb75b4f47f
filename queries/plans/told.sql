-- What the journal's chains tell of a plan's making and beginning: one row each, or none.
SELECT event, at_us, freeze_id, note FROM onefold_journal
WHERE plan_id = :plan_id AND event IN ('planned', 'begun') AND chain IS NOT NULL
ORDER BY seq
