-- The check of PostgreSQL: raises SQLSTATE OF007 where a freeze holds what is asked. The triggers on the ledgers call
-- it; so do those of your own schema (see orders.sql). It runs with the rights of whoever installs it, so services
-- need none on our tables.
-- A transaction that began before the last change of a freeze and keeps to what it saw then (REPEATABLE READ) fails
-- to be serialized (40001), and is to be run again. A setting that names a pass counts only together with its row,
-- which no other transaction sees.
CREATE FUNCTION onefold_guard_check_{version}(
    of_effect text, of_ledger text, of_tenant text, of_row text, of_order text, of_user text, of_show text,
    of_session text, of_topic text, of_created_us bigint
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $check$
DECLARE
    refusal text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(31365104204213348);
    IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
        PERFORM 1 FROM onefold_gate WHERE id = 1 FOR SHARE;
    END IF;
    IF NOT EXISTS (SELECT 1 FROM onefold_gate WHERE id = 1 AND frozen > 0)
       OR EXISTS (SELECT 1 FROM onefold_pass WHERE token = current_setting('onefold.pass', true)) THEN
        RETURN;
    END IF;
    SELECT format('onefold: %s is frozen by %s (%s): %s',
                  CASE asked.effect WHEN 'paid' THEN 'auto-payment' ELSE asked.effect END,
                  f.freeze_id, f.owner, f.reason)
    INTO refusal
    FROM (SELECT of_effect AS effect, of_ledger AS ledger, of_tenant AS tenant_id, of_row AS row_id,
                 of_order AS order_id, of_user AS user_id, of_show AS show_id, of_session AS session_id,
                 of_topic AS topic, of_created_us AS created_at_us) AS asked
    {held};
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'OF007', MESSAGE = refusal,
              HINT = 'wait until it is thawed: SELECT * FROM onefold_live_freezes';
    END IF;
END
$check$
----
CREATE FUNCTION onefold_guard_truncate_{version}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $guard$
DECLARE
    refusal text;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(31365104204213348);
    IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
        PERFORM 1 FROM onefold_gate WHERE id = 1 FOR SHARE;
    END IF;
    SELECT format('onefold: %s is frozen by %s (%s): %s', TG_ARGV[0], f.freeze_id, f.owner, f.reason)
    INTO refusal
    FROM onefold_frozen AS f
    WHERE f.ended = 0 AND f.lease_until_us > {now_us}
      AND CASE TG_ARGV[0] WHEN 'stock-release' THEN f.stock_release ELSE f.messages END = 1
    ORDER BY f.freeze_id
    LIMIT 1;
    IF refusal IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'OF007', MESSAGE = refusal,
              HINT = 'wait until it is thawed: SELECT * FROM onefold_live_freezes';
    END IF;
    RETURN NULL;
END
$guard$
----
GRANT SELECT ON onefold_live_freezes TO PUBLIC
