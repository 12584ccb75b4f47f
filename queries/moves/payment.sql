-- One payment's move, as a compare-and-set; rules and parameters as in moves/order.sql, and:
-- :refund_minor    what this move gives back, in the currency's minor unit; 0 but on the last leg of a refund
-- :refund_major    the same as a decimal text in the major unit, such as 120.00; cast it before you add it,
--                  CAST(:refund_major AS DECIMAL(10,2)): MySQL adds a text as a floating-point number
-- :amount_minor    the refund that this leg belongs to (null where it belongs to none)  :amount_major  the same
-- :currency        of that amount, and null with it
-- :captured_at_us  when the provider captured it (null where it does not say)
UPDATE payments
SET status = :to, version = :next_version, refunded_minor = refunded_minor + :refund_minor,
    captured_at_us = COALESCE(captured_at_us, :captured_at_us)
WHERE tenant_id = :tenant_id AND payment_id = :id AND status IN (:from) AND version = :version
