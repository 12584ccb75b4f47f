-- In this transaction a table is read whole only where no index can serve.
SET LOCAL enable_seqscan = off
