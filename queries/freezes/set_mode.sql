-- Makes a freeze hold in another way, as a compare-and-set on its token: 1 row or 0.
UPDATE onefold_freezes SET mode = :mode
WHERE freeze_id = :freeze_id AND token = :token AND state IN ('LIVE', 'NARROWED')
