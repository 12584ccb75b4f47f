-- First legs of many payments of one tenant that are alike, each a compare-and-set as in moves/payment.sql: as many rows as
-- there are :ids, or else some were not as seen and none of this may be committed. Nothing is given back by a first leg.
UPDATE payments
SET status = :to, version = :next_version
WHERE tenant_id = :tenant_id AND payment_id IN (:ids) AND status IN (:from) AND version = :version
