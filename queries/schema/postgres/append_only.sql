-- The journal and its heads are only ever added to: no entry is changed or taken away, one by one or all together.
-- Safe to run twice; a trigger that somebody has disabled is enabled again.
CREATE OR REPLACE FUNCTION onefold_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '% is append-only: no row is changed or taken away', TG_TABLE_NAME; END $$;
DO $$ DECLARE t text; BEGIN FOREACH t IN ARRAY ARRAY['onefold_journal', 'onefold_heads'] LOOP
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(t) AND tgname = 'onefold_rows_are_kept') THEN
        EXECUTE format('CREATE TRIGGER onefold_rows_are_kept BEFORE UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE PROCEDURE onefold_refuse_change()', t); END IF;
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(t) AND tgname = 'onefold_table_is_kept') THEN
        EXECUTE format('CREATE TRIGGER onefold_table_is_kept BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE PROCEDURE onefold_refuse_change()', t); END IF;
    IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(t) AND tgname LIKE 'onefold%kept' AND tgenabled = 'D') THEN
        EXECUTE format('ALTER TABLE %I ENABLE TRIGGER USER', t); END IF;
END LOOP; END $$;
