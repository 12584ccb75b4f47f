-- The check of SQLite, which has no procedures: what is inserted into this view is asked, and refused where a freeze
-- holds it. The triggers on the ledgers insert; so do those of your own schema (see orders.sql).
-- A pass is visible only to the one transaction that writes.
-- Whoever opens the file reads these triggers, so they say nothing that an old SQLite cannot parse (3.15 or newer, of
-- 2016): there RAISE takes no computed text, and with one nothing in the file could be read any more. The refusal is
-- therefore the complaint of json_extract about a path that is none. So a program that writes the ledgers needs SQLite
-- with the JSON functions: 3.38 or newer, or an older one that was built with them. RAISE stands beside it so that
-- SQLite keeps what the statement changed before, to undo it.
CREATE VIEW onefold_guard_check_{version} AS
SELECT '' AS effect, '' AS ledger, '' AS tenant_id, '' AS row_id, '' AS order_id, '' AS user_id, '' AS show_id,
       '' AS session_id, '' AS topic, 0 AS created_at_us
----
CREATE TRIGGER onefold_guard_check_insert_{version} INSTEAD OF INSERT ON onefold_guard_check_{version}
WHEN (SELECT frozen FROM onefold_gate WHERE id = 1) > 0 AND NOT EXISTS (SELECT 1 FROM onefold_pass)
BEGIN
    SELECT CASE
               WHEN json_extract('{}', 'onefold: ' || CASE asked.effect WHEN 'paid' THEN 'auto-payment'
                                                                        ELSE asked.effect END
                                       || ' is frozen by ' || f.freeze_id || ' (' || f.owner || '): ' || f.reason)
                    IS NULL
               THEN RAISE(ABORT, 'onefold: frozen; SELECT * FROM onefold_live_freezes says by whom and why')
           END
    FROM (SELECT NEW.effect AS effect, NEW.ledger AS ledger, NEW.tenant_id AS tenant_id, NEW.row_id AS row_id,
                 NEW.order_id AS order_id, NEW.user_id AS user_id, NEW.show_id AS show_id,
                 NEW.session_id AS session_id, NEW.topic AS topic, NEW.created_at_us AS created_at_us) AS asked
    {held};
END
