-- The guard of the payment ledger on SQLite: a new payment is INITIATED. What a provider reports is never stopped.
-- A row that moves elsewhere in the same breath is judged by its old place and by its new one.
-- An INSERT of a payment that is there already may turn out to be a report (ON CONFLICT DO UPDATE), so it
-- is judged only once it has inserted or updated a row.
-- For your own schema see orders.sql.
CREATE TRIGGER onefold_guard_payments_insert_{version} AFTER INSERT ON payments
WHEN NEW.status = 'INITIATED'
BEGIN
    INSERT INTO onefold_guard_check_{version}
    VALUES ('auto-payment', 'payments', NEW.tenant_id, NEW.payment_id, NEW.order_id, NEW.user_id, NEW.show_id,
            NEW.session_id, NULL, NEW.created_at_us);
END
----
CREATE TRIGGER onefold_guard_payments_update_{version} AFTER UPDATE ON payments
WHEN NEW.status = 'INITIATED'
     AND (OLD.status, OLD.tenant_id, OLD.payment_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id,
          OLD.created_at_us)
         IS NOT (NEW.status, NEW.tenant_id, NEW.payment_id, NEW.order_id, NEW.user_id, NEW.show_id,
                 NEW.session_id, NEW.created_at_us)
BEGIN
    INSERT INTO onefold_guard_check_{version}
    SELECT 'auto-payment', 'payments', OLD.tenant_id, OLD.payment_id, OLD.order_id, OLD.user_id, OLD.show_id,
           OLD.session_id, NULL, OLD.created_at_us
    WHERE (OLD.tenant_id, OLD.payment_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id,
           OLD.created_at_us)
          IS NOT (NEW.tenant_id, NEW.payment_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id,
                  NEW.created_at_us);
    INSERT INTO onefold_guard_check_{version}
    VALUES ('auto-payment', 'payments', NEW.tenant_id, NEW.payment_id, NEW.order_id, NEW.user_id, NEW.show_id,
            NEW.session_id, NULL, NEW.created_at_us);
END
