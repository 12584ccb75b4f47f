-- One order's move, as a compare-and-set. The first statement is the guard: it changes 1 row when the
-- row is as it was seen and 0 when it is not. Statements after it run in the same transaction, only
-- after 1 row. A line `-- or` begins an alternative that is tried where the one before changed 0 rows,
-- for a ledger spread over several tables.
-- A file for one move, such as moves/order.cancelled.sql, goes before this one.
-- :tenant_id  :id  :version (as seen)  :next_version (of our own counter)
-- :from  :to  statuses: the contract's names, or yours where the configuration maps them; :from is
--             a list where several of yours are one of the contract's: write IN (:from)
-- :step_key   belongs to this effect, at most 64 characters: for rows of your own about it. Each leg of
--             a refund has its own; empty where the move is no plan's (converge, requeue)
-- :actor      who does it      :now_us  microseconds since 1970 in UTC
-- What a guard of your own must heed:
--   types       All but :now_us and the like are text. PostgreSQL compares text with text only: write
--               id = CAST(:id AS integer), which keeps the index in use, and for the list
--               CAST(status AS text) IN (:from). MySQL compares a number with the text's number.
--   no version  Tenant, id and from-status are the guard. An opaque version (a text etag, CAST(xmin AS text))
--               is compared and never computed; xmin changes with every UPDATE of the row, by a trigger too,
--               and is the same for all that one transaction did.
--   subqueries  The guard's conditions stand on the row that it changes. After waiting for another writer
--               PostgreSQL looks at that row again, and not at the rows of a subquery. A status that stands
--               elsewhere needs a unique index there, or FOR UPDATE of a row that its writers change.
--   INSERT      A guard that inserts is INSERT … SELECT … WHERE as seen, with a unique index behind it and
--               ON CONFLICT DO NOTHING, so that the second of two inserts 0 rows.
--   one table   MySQL counts the rows that an UPDATE matches, in all of its tables: join none to the guard's.
--   others      Nothing that another ledger shows may change by the way: it would look like somebody's
--               hand there, and stop the intent. Afterwards this ledger must say :to of this row.
UPDATE orders
SET status = :to, version = :next_version
WHERE tenant_id = :tenant_id AND order_id = :id AND status IN (:from) AND version = :version
