-- Statistics of the embedded ledgers, once they are filled: the server takes them by itself only later, and until then
-- reads whole tables where an index would do.
ANALYZE orders;
ANALYZE payments;
ANALYZE inventory;
ANALYZE messages;
