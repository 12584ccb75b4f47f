-- The guard of the hold ledger on SQLite: a hold is RELEASED or EXPIRED, or removed while it is HELD or CONFIRMED.
-- A row that moves elsewhere in the same breath is judged by its old place and by its new one.
-- A live hold that leaves its place by an UPDATE is judged as one that is removed there; one that is given its first
-- order stays.
-- A row that an INSERT or UPDATE may replace is judged, too: REPLACE tells no trigger of it.
-- For your own schema see orders.sql.
CREATE TRIGGER onefold_guard_inventory_insert_{version} AFTER INSERT ON inventory
WHEN NEW.status IN ('RELEASED', 'EXPIRED')
BEGIN
    INSERT INTO onefold_guard_check_{version}
    VALUES ('stock-release', 'inventory', NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id,
            NEW.session_id, NULL, NEW.created_at_us);
END
----
CREATE TRIGGER onefold_guard_inventory_replace_{version} BEFORE INSERT ON inventory
BEGIN
    INSERT INTO onefold_guard_check_{version}
    SELECT 'stock-release', 'inventory', old_row.tenant_id, old_row.hold_id, old_row.order_id, old_row.user_id,
           old_row.show_id, old_row.session_id, NULL, old_row.created_at_us
    FROM inventory AS old_row
    WHERE old_row.tenant_id = NEW.tenant_id AND old_row.hold_id = NEW.hold_id
      AND (NEW.status IN ('RELEASED', 'EXPIRED')
           OR (old_row.status IN ('HELD', 'CONFIRMED')
               AND (COALESCE(old_row.order_id, NEW.order_id), old_row.user_id, old_row.show_id, old_row.session_id,
                    old_row.created_at_us)
                   IS NOT (NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id, NEW.created_at_us)));
END
----
CREATE TRIGGER onefold_guard_inventory_overwrite_{version} BEFORE UPDATE OF tenant_id, hold_id ON inventory
WHEN (OLD.tenant_id, OLD.hold_id) IS NOT (NEW.tenant_id, NEW.hold_id)
BEGIN
    INSERT INTO onefold_guard_check_{version}
    SELECT 'stock-release', 'inventory', old_row.tenant_id, old_row.hold_id, old_row.order_id, old_row.user_id,
           old_row.show_id, old_row.session_id, NULL, old_row.created_at_us
    FROM inventory AS old_row
    WHERE old_row.tenant_id = NEW.tenant_id AND old_row.hold_id = NEW.hold_id
      AND old_row.status IN ('HELD', 'CONFIRMED');
END
----
CREATE TRIGGER onefold_guard_inventory_update_{version} AFTER UPDATE ON inventory
WHEN NEW.status IN ('RELEASED', 'EXPIRED')
     AND (OLD.status, OLD.tenant_id, OLD.hold_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id,
          OLD.created_at_us)
         IS NOT (NEW.status, NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id,
                 NEW.created_at_us)
     OR OLD.status IN ('HELD', 'CONFIRMED')
     AND (OLD.tenant_id, OLD.hold_id, COALESCE(OLD.order_id, NEW.order_id), OLD.user_id, OLD.show_id,
          OLD.session_id, OLD.created_at_us)
         IS NOT (NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id, NEW.created_at_us)
BEGIN
    INSERT INTO onefold_guard_check_{version}
    SELECT 'stock-release', 'inventory', OLD.tenant_id, OLD.hold_id, OLD.order_id, OLD.user_id, OLD.show_id,
           OLD.session_id, NULL, OLD.created_at_us
    WHERE (OLD.tenant_id, OLD.hold_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id, OLD.created_at_us)
          IS NOT (NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id,
                  NEW.created_at_us);
    INSERT INTO onefold_guard_check_{version}
    SELECT 'stock-release', 'inventory', NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id,
           NEW.session_id, NULL, NEW.created_at_us
    WHERE NEW.status IN ('RELEASED', 'EXPIRED');
END
----
CREATE TRIGGER onefold_guard_inventory_delete_{version} AFTER DELETE ON inventory
WHEN OLD.status IN ('HELD', 'CONFIRMED')
BEGIN
    INSERT INTO onefold_guard_check_{version}
    VALUES ('stock-release', 'inventory', OLD.tenant_id, OLD.hold_id, OLD.order_id, OLD.user_id, OLD.show_id,
            OLD.session_id, NULL, OLD.created_at_us);
END
