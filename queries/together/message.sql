-- Moves of many messages of one tenant that are alike, each a compare-and-set as in moves/message.sql: as many rows as there are
-- :ids, or else some were not as seen and none of this may be committed.
UPDATE messages
SET status = :to, version = :next_version
WHERE tenant_id = :tenant_id AND message_id IN (:ids) AND status IN (:from) AND version = :version
