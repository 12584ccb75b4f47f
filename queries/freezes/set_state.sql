-- Narrows or ends a freeze, as a compare-and-set on its token: 1 row or 0.
UPDATE onefold_freezes
SET state = :state, effects = :effects, narrowed_to = :narrowed_to
WHERE freeze_id = :freeze_id AND token = :token AND state IN ('LIVE', 'NARROWED')
