-- Whoever calls our functions cannot make them look into schemas or temporary tables of his own.
DO $path$
DECLARE
    guard regprocedure;
BEGIN
    FOR guard IN SELECT oid FROM pg_proc
                 WHERE proname LIKE 'onefold\_guard\_%\_{version}' AND pronamespace = current_schema()::regnamespace
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', guard, current_schema());
    END LOOP;
END
$path$
