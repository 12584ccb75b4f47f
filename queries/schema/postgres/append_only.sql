-- The journal, its heads, approvals and the rules for them are only ever added to: no row is changed or taken away, one by one or all
-- together, and no entry comes in outside a chain.
-- Safe to run twice; a trigger that somebody has disabled is enabled again.
CREATE OR REPLACE FUNCTION onefold_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '% is append-only: no row is changed or taken away', TG_TABLE_NAME; END $$;
DO $$ DECLARE t text; BEGIN FOREACH t IN ARRAY ARRAY['onefold_journal', 'onefold_heads', 'onefold_approvals', 'onefold_rules'] LOOP
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(t) AND tgname = 'onefold_rows_are_kept') THEN
        EXECUTE format('CREATE TRIGGER onefold_rows_are_kept BEFORE UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE PROCEDURE onefold_refuse_change()', t); END IF;
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(t) AND tgname = 'onefold_table_is_kept') THEN
        EXECUTE format('CREATE TRIGGER onefold_table_is_kept BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE PROCEDURE onefold_refuse_change()', t); END IF;
    IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(t) AND tgname LIKE 'onefold%kept' AND tgenabled = 'D') THEN
        EXECUTE format('ALTER TABLE %I ENABLE TRIGGER USER', t); END IF;
END LOOP; END $$;
CREATE OR REPLACE FUNCTION onefold_refuse_unchained() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'onefold_journal is a chain: an entry stands in one, behind those before it'; END $$;
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass('onefold_journal') AND tgname = 'onefold_entries_are_chained') THEN
        CREATE TRIGGER onefold_entries_are_chained BEFORE INSERT ON onefold_journal FOR EACH ROW
        WHEN (NEW.chain IS NULL OR NEW.hash IS NULL OR NEW.seq <= 0) EXECUTE PROCEDURE onefold_refuse_unchained(); END IF;
END $$;
