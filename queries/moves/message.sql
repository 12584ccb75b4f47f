-- One message's move, as a compare-and-set; rules and parameters as in moves/order.sql.
UPDATE messages
SET status = :to, version = :next_version
WHERE tenant_id = :tenant_id AND message_id = :id AND status IN (:from) AND version = :version
