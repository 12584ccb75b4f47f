-- The guard of the hold ledger on MySQL and MariaDB: a hold is RELEASED or EXPIRED, or removed while it is HELD or
-- CONFIRMED.
-- A row that moves elsewhere in the same breath is judged by its old place and by its new one.
-- A row that an INSERT may replace is judged, too: REPLACE tells no trigger of it.
-- A live hold that leaves its place by an UPDATE is judged as one that is removed there; one that is given its first
-- order stays.
-- To truncate runs no trigger here, and so cannot be refused: it needs the DROP privilege, which no service should
-- have.
-- For your own schema see orders.sql.
CREATE TRIGGER onefold_guard_inventory_insert_{version} AFTER INSERT ON inventory FOR EACH ROW
BEGIN
    IF NEW.status IN ('RELEASED', 'EXPIRED') THEN
        CALL onefold_guard_check_{version}(
            'stock-release', 'inventory', NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id,
            NEW.session_id, NULL, NEW.created_at_us);
    END IF;
END
----
CREATE TRIGGER onefold_guard_inventory_replace_{version} BEFORE INSERT ON inventory FOR EACH ROW
BEGIN
    DECLARE old_order_id {id};
    DECLARE old_user_id {id};
    DECLARE old_show_id {id};
    DECLARE old_session_id {id};
    DECLARE old_created_at_us BIGINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    IF NEW.status IN ('RELEASED', 'EXPIRED') THEN
        SELECT order_id, user_id, show_id, session_id, created_at_us
        INTO old_order_id, old_user_id, old_show_id, old_session_id, old_created_at_us
        FROM inventory
        WHERE tenant_id = NEW.tenant_id AND hold_id = NEW.hold_id;
        IF old_created_at_us IS NOT NULL THEN
            CALL onefold_guard_check_{version}(
                'stock-release', 'inventory', NEW.tenant_id, NEW.hold_id, old_order_id, old_user_id,
                old_show_id, old_session_id, NULL, old_created_at_us);
        END IF;
    END IF;
END
----
CREATE TRIGGER onefold_guard_inventory_update_{version} AFTER UPDATE ON inventory FOR EACH ROW
BEGIN
    IF (NEW.status IN ('RELEASED', 'EXPIRED')
        AND NOT ((OLD.status, OLD.tenant_id, OLD.hold_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id,
                 OLD.created_at_us)
                <=> (NEW.status, NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id,
                     NEW.session_id, NEW.created_at_us)))
       OR (OLD.status IN ('HELD', 'CONFIRMED')
           AND NOT ((OLD.tenant_id, OLD.hold_id, COALESCE(OLD.order_id, NEW.order_id), OLD.user_id, OLD.show_id,
                     OLD.session_id, OLD.created_at_us)
                        <=> (NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id,
                             NEW.created_at_us))) THEN
        IF NOT ((OLD.tenant_id, OLD.hold_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id,
                 OLD.created_at_us)
                <=> (NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id,
                     NEW.created_at_us)) THEN
            CALL onefold_guard_check_{version}(
                'stock-release', 'inventory', OLD.tenant_id, OLD.hold_id, OLD.order_id, OLD.user_id, OLD.show_id,
                OLD.session_id, NULL, OLD.created_at_us);
        END IF;
        IF NEW.status IN ('RELEASED', 'EXPIRED') THEN
            CALL onefold_guard_check_{version}(
                'stock-release', 'inventory', NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id,
                NEW.session_id, NULL, NEW.created_at_us);
        END IF;
    END IF;
END
----
CREATE TRIGGER onefold_guard_inventory_delete_{version} AFTER DELETE ON inventory FOR EACH ROW
BEGIN
    IF OLD.status IN ('HELD', 'CONFIRMED') THEN
        CALL onefold_guard_check_{version}(
            'stock-release', 'inventory', OLD.tenant_id, OLD.hold_id, OLD.order_id, OLD.user_id, OLD.show_id,
            OLD.session_id, NULL, OLD.created_at_us);
    END IF;
END
