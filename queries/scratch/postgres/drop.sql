-- Removes a scratch schema that has been proven, in this transaction, to be a drill's own.
DROP SCHEMA {scratch} CASCADE
