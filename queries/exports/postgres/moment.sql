-- The moment that this transaction sees, for another that is to see the same: one row.
SELECT pg_export_snapshot() AS moment
