-- The guard of the payment ledger on PostgreSQL: a new payment is INITIATED. What a provider reports is never
-- stopped.
-- A row that moves elsewhere in the same breath is judged by its old place and by its new one.
-- For your own schema see orders.sql.
CREATE FUNCTION onefold_guard_payments_{version}() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
    IF TG_OP = 'UPDATE' AND
       (OLD.tenant_id, OLD.payment_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id, OLD.created_at_us)
       IS DISTINCT FROM (NEW.tenant_id, NEW.payment_id, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id,
                        NEW.created_at_us) THEN
        PERFORM onefold_guard_check_{version}(
            'auto-payment', 'payments', OLD.tenant_id, OLD.payment_id, OLD.order_id, OLD.user_id, OLD.show_id,
            OLD.session_id, NULL, OLD.created_at_us);
    END IF;
    PERFORM onefold_guard_check_{version}(
        'auto-payment', 'payments', NEW.tenant_id, NEW.payment_id, NEW.order_id, NEW.user_id, NEW.show_id,
        NEW.session_id, NULL, NEW.created_at_us);
    RETURN NULL;
END
$guard$
----
CREATE TRIGGER onefold_guard_payments_insert_{version} AFTER INSERT ON payments FOR EACH ROW
WHEN (NEW.status = 'INITIATED')
EXECUTE FUNCTION onefold_guard_payments_{version}()
----
CREATE TRIGGER onefold_guard_payments_update_{version} AFTER UPDATE ON payments FOR EACH ROW
WHEN (NEW.status = 'INITIATED'
      AND (OLD.status, OLD.tenant_id, OLD.payment_id, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id,
           OLD.created_at_us)
          IS DISTINCT FROM (NEW.status, NEW.tenant_id, NEW.payment_id, NEW.order_id, NEW.user_id, NEW.show_id,
                            NEW.session_id, NEW.created_at_us))
EXECUTE FUNCTION onefold_guard_payments_{version}()
