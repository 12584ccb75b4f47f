-- Moves of many orders of one tenant that are alike, each a compare-and-set as in moves/order.sql: as many rows as there are
-- :ids, or else some were not as seen and none of this may be committed.
UPDATE orders
SET status = :to, version = :next_version
WHERE tenant_id = :tenant_id AND order_id IN (:ids) AND status IN (:from) AND version = :version
