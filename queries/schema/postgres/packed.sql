-- What is packed is stored as it is: PostgreSQL would try for long, and in vain, to compress it once more. Safe to run twice.
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('onefold_plan_parts') AND attname = 'intents' AND attstorage <> 'e') THEN
        ALTER TABLE onefold_plan_parts ALTER COLUMN intents SET STORAGE EXTERNAL; END IF;
END $$;
