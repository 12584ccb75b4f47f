-- The guard of the order ledger on SQLite: an order becomes PAID (unless a captured charge of it is in this
-- database) or TICKETED.
-- PAID is judged as it is written, since nothing can be judged at commit here: where the service writes PAID before
-- the capture in one transaction, PAID is refused, and the capture is lost if the service then rolls back.
-- A row that moves elsewhere in the same breath is judged by its old place and by its new one.
-- A row that an INSERT may replace is judged, too: REPLACE tells no trigger of it.
--
-- Your own schema: a queries folder that shadows ledgers/orders.sql brings its own enforce/sqlite/orders.sql (so for
-- each ledger). It makes triggers on your tables, named onefold_guard_…_{version}, that call
--   INSERT INTO onefold_guard_check_{version}
-- VALUES (effect, ledger, tenant_id, row_id, order_id, user_id, show_id, session_id, topic, created_at_us)
-- with effect 'auto-payment' (a new payment), 'paid', 'ticketing', 'stock-release' or 'messages'; null for what your
-- row does not say; the order's time in microseconds since 1970 in UTC. Statements are parted by a line of ----.
CREATE TRIGGER onefold_guard_orders_insert_{version} AFTER INSERT ON orders
WHEN NEW.status IN ('PAID', 'TICKETED')
BEGIN
    INSERT INTO onefold_guard_check_{version}
    VALUES (CASE NEW.status WHEN 'PAID' THEN 'paid' ELSE 'ticketing' END, 'orders', NEW.tenant_id, NEW.order_id,
            NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id, NULL, NEW.created_at_us);
END
----
CREATE TRIGGER onefold_guard_orders_replace_{version} BEFORE INSERT ON orders
WHEN NEW.status IN ('PAID', 'TICKETED')
BEGIN
    INSERT INTO onefold_guard_check_{version}
    SELECT CASE NEW.status WHEN 'PAID' THEN 'paid' ELSE 'ticketing' END, 'orders', old_row.tenant_id,
           old_row.order_id, old_row.order_id, old_row.user_id, old_row.show_id, old_row.session_id, NULL,
           old_row.created_at_us
    FROM orders AS old_row
    WHERE old_row.tenant_id = NEW.tenant_id AND old_row.order_id = NEW.order_id;
END
----
CREATE TRIGGER onefold_guard_orders_update_{version} AFTER UPDATE ON orders
WHEN NEW.status IN ('PAID', 'TICKETED')
     AND (OLD.status, OLD.tenant_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id, OLD.created_at_us)
         IS NOT (NEW.status, NEW.tenant_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id,
                 NEW.created_at_us)
BEGIN
    INSERT INTO onefold_guard_check_{version}
    SELECT CASE NEW.status WHEN 'PAID' THEN 'paid' ELSE 'ticketing' END, 'orders', OLD.tenant_id, OLD.order_id,
           OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id, NULL, OLD.created_at_us
    WHERE (OLD.tenant_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id, OLD.created_at_us)
          IS NOT (NEW.tenant_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id, NEW.created_at_us);
    INSERT INTO onefold_guard_check_{version}
    VALUES (CASE NEW.status WHEN 'PAID' THEN 'paid' ELSE 'ticketing' END, 'orders', NEW.tenant_id, NEW.order_id,
            NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id, NULL, NEW.created_at_us);
END
