-- Holds a freeze still until the transaction ends, so that nobody takes it over meanwhile: 1 row while it is
-- live and held under this token, else 0.
UPDATE onefold_freezes SET token = :token
WHERE freeze_id = :freeze_id AND token = :token AND state IN ('LIVE', 'NARROWED') AND lease_until_us > :now_us
