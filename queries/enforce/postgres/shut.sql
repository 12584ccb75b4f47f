-- Before close_gate.sql: guarded writes hold this lock shared until their transactions end, and we wait for them, 2
-- s at most.
SELECT set_config('lock_timeout', '2s', true), pg_advisory_xact_lock(31365104204213348)::text
