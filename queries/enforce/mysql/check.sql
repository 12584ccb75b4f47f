-- The check of MySQL and MariaDB: signals SQLSTATE 45000 where a freeze holds what is asked. The triggers on the
-- ledgers
-- call it; so do those of your own schema (see orders.sql). It runs with the rights of whoever installs it, so
-- services need none on our tables.
-- A transaction that began before the last change of a freeze and keeps to what it saw then (REPEATABLE READ) is
-- refused with SQLSTATE 40001, and is to be run again. A variable that names a pass counts only together with its
-- row,
-- which is of this very connection; another one that reads what is not committed gains nothing by it.
-- A signal holds 128 characters: a long owner and a long reason are shortened, each so that it can be told.
CREATE PROCEDURE onefold_guard_check_{version}(
    of_effect {id}, of_ledger {id}, of_tenant {id}, of_row {id}, of_order {id}, of_user {id}, of_show {id},
    of_session {id}, of_topic {id}, of_created_us BIGINT
)
BEGIN
    DECLARE now_generation, now_frozen, seen_generation BIGINT;
    DECLARE pass {id};
    DECLARE refusal VARCHAR(400) CHARACTER SET utf8mb4;
    SELECT generation, frozen INTO now_generation, now_frozen FROM onefold_gate WHERE id = 1 LOCK IN SHARE MODE;
    SET pass = @onefold_pass;
    IF now_frozen > 0 AND (pass IS NULL OR NOT EXISTS (
        SELECT 1 FROM onefold_pass WHERE token = pass AND connection_id = CONNECTION_ID()
    )) THEN
        SET seen_generation = (SELECT generation FROM onefold_gate WHERE id = 1);
        IF seen_generation <> now_generation THEN
            SIGNAL SQLSTATE '40001'
                SET MESSAGE_TEXT = 'onefold: a freeze has changed since this transaction began: roll back and run it again';
        END IF;
        SET refusal = (
            SELECT CONCAT('onefold: ', CASE asked.effect WHEN 'paid' THEN 'auto-payment' ELSE asked.effect END,
                          ' is frozen by ', f.freeze_id, ' (',
                          IF(CHAR_LENGTH(f.owner) > 32, CONCAT(LEFT(f.owner, 29), '...'), f.owner), '): ',
                          LEFT(f.reason, 200))
            FROM (SELECT of_effect AS effect, of_ledger AS ledger, of_tenant AS tenant_id, of_row AS row_id,
                         of_order AS order_id, of_user AS user_id, of_show AS show_id, of_session AS session_id,
                         of_topic AS topic, of_created_us AS created_at_us) AS asked
            {held}
        );
        IF CHAR_LENGTH(refusal) > 128 THEN
            SET refusal = CONCAT(LEFT(refusal, 125), '...');
        END IF;
        IF refusal IS NOT NULL THEN
            SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = refusal;
        END IF;
    END IF;
END
