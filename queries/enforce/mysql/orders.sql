-- The guard of the order ledger on MySQL and MariaDB: an order becomes PAID (unless a captured charge of it is in
-- this database) or TICKETED.
-- PAID is judged as it is written, since nothing can be judged at commit here: where the service writes PAID before
-- the capture in one transaction, PAID is refused, and the capture is lost if the service then rolls back.
-- A row that moves elsewhere in the same breath is judged by its old place and by its new one.
-- A row that an INSERT may replace is judged, too: REPLACE tells no trigger of it.
--
-- Your own schema: a queries folder that shadows ledgers/orders.sql brings its own enforce/mysql/orders.sql (so for
-- each ledger). It makes triggers on your tables, named onefold_guard_…_{version}, that call
--   CALL onefold_guard_check_{version}(effect, ledger, tenant_id, row_id, order_id, user_id, show_id, session_id,
-- topic, created_at_us)
-- with effect 'auto-payment' (a new payment), 'paid', 'ticketing', 'stock-release' or 'messages'; null for what your
-- row does not say; the order's time in microseconds since 1970 in UTC. Statements are parted by a line of ----.
CREATE TRIGGER onefold_guard_orders_insert_{version} AFTER INSERT ON orders FOR EACH ROW
BEGIN
    IF NEW.status IN ('PAID', 'TICKETED') THEN
        CALL onefold_guard_check_{version}(
            CASE NEW.status WHEN 'PAID' THEN 'paid' ELSE 'ticketing' END, 'orders', NEW.tenant_id, NEW.order_id,
            NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id, NULL, NEW.created_at_us);
    END IF;
END
----
CREATE TRIGGER onefold_guard_orders_replace_{version} BEFORE INSERT ON orders FOR EACH ROW
BEGIN
    DECLARE old_user_id {id};
    DECLARE old_show_id {id};
    DECLARE old_session_id {id};
    DECLARE old_created_at_us BIGINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    IF NEW.status IN ('PAID', 'TICKETED') THEN
        SELECT user_id, show_id, session_id, created_at_us
        INTO old_user_id, old_show_id, old_session_id, old_created_at_us
        FROM orders
        WHERE tenant_id = NEW.tenant_id AND order_id = NEW.order_id;
        IF old_created_at_us IS NOT NULL THEN
            CALL onefold_guard_check_{version}(
                CASE NEW.status WHEN 'PAID' THEN 'paid' ELSE 'ticketing' END, 'orders', NEW.tenant_id,
                NEW.order_id, NEW.order_id, old_user_id, old_show_id, old_session_id, NULL, old_created_at_us);
        END IF;
    END IF;
END
----
CREATE TRIGGER onefold_guard_orders_update_{version} AFTER UPDATE ON orders FOR EACH ROW
BEGIN
    IF (NEW.status IN ('PAID', 'TICKETED')
        AND NOT ((OLD.status, OLD.tenant_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id,
                 OLD.created_at_us)
                <=> (NEW.status, NEW.tenant_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id,
                     NEW.created_at_us))) THEN
        IF NOT ((OLD.tenant_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id, OLD.created_at_us)
                <=> (NEW.tenant_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id, NEW.created_at_us)) THEN
            CALL onefold_guard_check_{version}(
                CASE NEW.status WHEN 'PAID' THEN 'paid' ELSE 'ticketing' END, 'orders', OLD.tenant_id, OLD.order_id,
                OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id, NULL, OLD.created_at_us);
        END IF;
        CALL onefold_guard_check_{version}(
            CASE NEW.status WHEN 'PAID' THEN 'paid' ELSE 'ticketing' END, 'orders', NEW.tenant_id, NEW.order_id,
            NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id, NULL, NEW.created_at_us);
    END IF;
END
