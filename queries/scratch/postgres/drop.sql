-- Removes a scratch schema that has been proven, in this transaction, to be a drill's own: the drill's tables by
-- name, then the schema. Whatever else is in it or leans on it is somebody's, and then nothing is removed.
DROP TABLE IF EXISTS {scratch}.orders, {scratch}.payments, {scratch}.inventory, {scratch}.messages,
    {scratch}.onefold_idempotency, {scratch}.onefold_idempotency_names, {scratch}.onefold_idempotency_archive,
    {scratch}.onefold_drill RESTRICT;
DROP SCHEMA {scratch} RESTRICT
