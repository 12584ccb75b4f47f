-- Makes a copy what its freeze is now: 1 row, or 0 where there is no copy yet.
UPDATE onefold_frozen
SET token = :token, owner = :owner, auto_payment = :auto_payment, paid = :paid, ticketing = :ticketing,
    stock_release = :stock_release, messages = :messages, narrowing = :narrowing,
    lease_until_us = {now_us} + :lease_left_us, ended = :ended
WHERE freeze_id = :freeze_id
