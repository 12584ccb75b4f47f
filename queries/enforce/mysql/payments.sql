-- The guard of the payment ledger on MySQL and MariaDB: a new payment is INITIATED. What a provider reports is
-- never stopped.
-- A row that moves elsewhere in the same breath is judged by its old place and by its new one.
-- An INSERT of a payment that is there already may turn out to be a report (ON DUPLICATE KEY UPDATE), so it
-- is judged only once it has inserted or updated a row.
-- For your own schema see orders.sql.
CREATE TRIGGER onefold_guard_payments_insert_{version} AFTER INSERT ON payments FOR EACH ROW
BEGIN
    IF NEW.status = 'INITIATED' THEN
        CALL onefold_guard_check_{version}(
            'auto-payment', 'payments', NEW.tenant_id, NEW.payment_id, NEW.order_id, NEW.user_id, NEW.show_id,
            NEW.session_id, NULL, NEW.created_at_us);
    END IF;
END
----
CREATE TRIGGER onefold_guard_payments_update_{version} AFTER UPDATE ON payments FOR EACH ROW
BEGIN
    IF (NEW.status = 'INITIATED'
        AND NOT ((OLD.status, OLD.tenant_id, OLD.payment_id, OLD.order_id, OLD.user_id, OLD.show_id,
                 OLD.session_id, OLD.created_at_us)
                <=> (NEW.status, NEW.tenant_id, NEW.payment_id, NEW.order_id, NEW.user_id, NEW.show_id,
                     NEW.session_id, NEW.created_at_us))) THEN
        IF NOT ((OLD.tenant_id, OLD.payment_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id,
                 OLD.created_at_us)
                <=> (NEW.tenant_id, NEW.payment_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id,
                     NEW.created_at_us)) THEN
            CALL onefold_guard_check_{version}(
                'auto-payment', 'payments', OLD.tenant_id, OLD.payment_id, OLD.order_id, OLD.user_id, OLD.show_id,
                OLD.session_id, NULL, OLD.created_at_us);
        END IF;
        CALL onefold_guard_check_{version}(
            'auto-payment', 'payments', NEW.tenant_id, NEW.payment_id, NEW.order_id, NEW.user_id, NEW.show_id,
            NEW.session_id, NULL, NEW.created_at_us);
    END IF;
END
