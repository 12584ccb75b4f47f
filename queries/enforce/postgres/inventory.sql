-- The guard of the hold ledger on PostgreSQL: a hold is RELEASED or EXPIRED, or removed while it is HELD or
-- CONFIRMED.
-- A row that moves elsewhere in the same breath is judged by its old place and by its new one.
-- A live hold that leaves its place by an UPDATE is judged as one that is removed there; one that is given its first
-- order stays.
-- To truncate says nothing of rows: that is refused while any live freeze stops the release of stock.
-- For your own schema see orders.sql.
CREATE FUNCTION onefold_guard_inventory_{version}() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
    IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND
       (OLD.tenant_id, OLD.hold_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id, OLD.created_at_us)
       IS DISTINCT FROM (NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id,
                        NEW.created_at_us) THEN
        PERFORM onefold_guard_check_{version}(
            'stock-release', 'inventory', OLD.tenant_id, OLD.hold_id, OLD.order_id, OLD.user_id, OLD.show_id,
            OLD.session_id, NULL, OLD.created_at_us);
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.status IN ('RELEASED', 'EXPIRED') THEN
        PERFORM onefold_guard_check_{version}(
            'stock-release', 'inventory', NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id,
            NEW.session_id, NULL, NEW.created_at_us);
    END IF;
    RETURN NULL;
END
$guard$
----
CREATE TRIGGER onefold_guard_inventory_insert_{version} AFTER INSERT ON inventory FOR EACH ROW
WHEN (NEW.status IN ('RELEASED', 'EXPIRED'))
EXECUTE FUNCTION onefold_guard_inventory_{version}()
----
CREATE TRIGGER onefold_guard_inventory_update_{version} AFTER UPDATE ON inventory FOR EACH ROW
WHEN (NEW.status IN ('RELEASED', 'EXPIRED')
      AND (OLD.status, OLD.tenant_id, OLD.hold_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id,
           OLD.created_at_us)
          IS DISTINCT FROM (NEW.status, NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id,
                            NEW.session_id, NEW.created_at_us)
      OR OLD.status IN ('HELD', 'CONFIRMED')
      AND (OLD.tenant_id, OLD.hold_id, COALESCE(OLD.order_id, NEW.order_id), OLD.user_id, OLD.show_id,
           OLD.session_id, OLD.created_at_us)
              IS DISTINCT FROM (NEW.tenant_id, NEW.hold_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id,
                                NEW.created_at_us))
EXECUTE FUNCTION onefold_guard_inventory_{version}()
----
CREATE TRIGGER onefold_guard_inventory_delete_{version} AFTER DELETE ON inventory FOR EACH ROW
WHEN (OLD.status IN ('HELD', 'CONFIRMED'))
EXECUTE FUNCTION onefold_guard_inventory_{version}()
----
CREATE TRIGGER onefold_guard_inventory_truncate_{version} BEFORE TRUNCATE ON inventory FOR EACH STATEMENT
EXECUTE FUNCTION onefold_guard_truncate_{version}('stock-release')
