-- Moves of many holds of one tenant that are alike, each a compare-and-set as in moves/hold.sql: as many rows as there are
-- :ids, or else some were not as seen and none of this may be committed.
UPDATE inventory
SET status = :to, version = :next_version
WHERE tenant_id = :tenant_id AND hold_id IN (:ids) AND status IN (:from) AND version = :version
