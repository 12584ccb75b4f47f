-- The next parts of a plan, so many as are held at once; none behind the last.
SELECT part, intents FROM onefold_plan_parts WHERE plan_id = :plan_id AND part >= :next ORDER BY part LIMIT 4
