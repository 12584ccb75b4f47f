-- The guard of the order ledger on PostgreSQL: an order becomes PAID (unless a captured charge of it is in this
-- database) or TICKETED.
-- PAID is judged when the transaction commits, so one that writes PAID first and the capture after it keeps both.
-- A row that moves elsewhere in the same breath is judged by its old place and by its new one.
--
-- Your own schema: a queries folder that shadows ledgers/orders.sql brings its own enforce/postgres/orders.sql (so
-- for each ledger). It makes triggers on your tables, named onefold_guard_…_{version}, that call
--   PERFORM onefold_guard_check_{version}(effect, ledger, tenant_id, row_id, order_id, user_id, show_id,
-- session_id, topic, created_at_us)
-- with effect 'auto-payment' (a new payment), 'paid', 'ticketing', 'stock-release' or 'messages'; null for what your
-- row does not say; the order's time in microseconds since 1970 in UTC. Statements are parted by a line of ----.
CREATE FUNCTION onefold_guard_orders_{version}() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
    IF TG_OP = 'UPDATE' AND
       (OLD.tenant_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id, OLD.created_at_us)
       IS DISTINCT FROM (NEW.tenant_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id, NEW.created_at_us) THEN
        PERFORM onefold_guard_check_{version}(
            CASE NEW.status WHEN 'PAID' THEN 'paid' ELSE 'ticketing' END, 'orders', OLD.tenant_id, OLD.order_id,
            OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id, NULL, OLD.created_at_us);
    END IF;
    PERFORM onefold_guard_check_{version}(
        CASE NEW.status WHEN 'PAID' THEN 'paid' ELSE 'ticketing' END, 'orders', NEW.tenant_id, NEW.order_id,
        NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id, NULL, NEW.created_at_us);
    RETURN NULL;
END
$guard$
----
CREATE TRIGGER onefold_guard_orders_insert_{version} AFTER INSERT ON orders FOR EACH ROW
WHEN (NEW.status = 'TICKETED')
EXECUTE FUNCTION onefold_guard_orders_{version}()
----
CREATE TRIGGER onefold_guard_orders_update_{version} AFTER UPDATE ON orders FOR EACH ROW
WHEN (NEW.status = 'TICKETED'
      AND (OLD.status, OLD.tenant_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id, OLD.created_at_us)
          IS DISTINCT FROM (NEW.status, NEW.tenant_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id,
                            NEW.created_at_us))
EXECUTE FUNCTION onefold_guard_orders_{version}()
----
CREATE CONSTRAINT TRIGGER onefold_guard_orders_paid_insert_{version} AFTER INSERT ON orders
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.status = 'PAID')
EXECUTE FUNCTION onefold_guard_orders_{version}()
----
CREATE CONSTRAINT TRIGGER onefold_guard_orders_paid_update_{version} AFTER UPDATE ON orders
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.status = 'PAID'
      AND (OLD.status, OLD.tenant_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id, OLD.created_at_us)
          IS DISTINCT FROM (NEW.status, NEW.tenant_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id,
                            NEW.created_at_us))
EXECUTE FUNCTION onefold_guard_orders_{version}()
