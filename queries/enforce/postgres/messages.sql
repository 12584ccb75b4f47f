-- The guard of the message ledger on PostgreSQL: a queued message is taken up (IN_FLIGHT, CONSUMED at once, or
-- removed), of the topics frozen.
-- A row that moves elsewhere in the same breath is judged by its old place and by its new one.
-- A queued message that leaves its place or topic by an UPDATE is judged as one that is removed there; one that is
-- given its first order stays.
-- To truncate says nothing of rows: that is refused while any live freeze stops messages.
-- For your own schema see orders.sql.
CREATE FUNCTION onefold_guard_messages_{version}() RETURNS trigger LANGUAGE plpgsql AS $guard$
BEGIN
    IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND
       (OLD.tenant_id, OLD.message_id, OLD.topic, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id,
        OLD.created_at_us)
       IS DISTINCT FROM (NEW.tenant_id, NEW.message_id, NEW.topic, NEW.order_id, NEW.user_id, NEW.show_id,
                        NEW.session_id, NEW.created_at_us) THEN
        PERFORM onefold_guard_check_{version}(
            'messages', 'messages', OLD.tenant_id, OLD.message_id, OLD.order_id, OLD.user_id, OLD.show_id,
            OLD.session_id, OLD.topic, OLD.created_at_us);
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.status IN ('IN_FLIGHT', 'CONSUMED') THEN
        PERFORM onefold_guard_check_{version}(
            'messages', 'messages', NEW.tenant_id, NEW.message_id, NEW.order_id, NEW.user_id, NEW.show_id,
            NEW.session_id, NEW.topic, NEW.created_at_us);
    END IF;
    RETURN NULL;
END
$guard$
----
CREATE TRIGGER onefold_guard_messages_insert_{version} AFTER INSERT ON messages FOR EACH ROW
WHEN (NEW.status = 'IN_FLIGHT')
EXECUTE FUNCTION onefold_guard_messages_{version}()
----
CREATE TRIGGER onefold_guard_messages_update_{version} AFTER UPDATE ON messages FOR EACH ROW
WHEN (NEW.status = 'IN_FLIGHT'
      AND (OLD.status, OLD.tenant_id, OLD.message_id, OLD.topic, OLD.order_id, OLD.user_id, OLD.show_id,
           OLD.session_id, OLD.created_at_us)
          IS DISTINCT FROM (NEW.status, NEW.tenant_id, NEW.message_id, NEW.topic, NEW.order_id, NEW.user_id,
                            NEW.show_id, NEW.session_id, NEW.created_at_us)
      OR OLD.status = 'QUEUED'
      AND (NEW.status = 'CONSUMED'
           OR (OLD.tenant_id, OLD.message_id, OLD.topic, COALESCE(OLD.order_id, NEW.order_id), OLD.user_id,
               OLD.show_id, OLD.session_id, OLD.created_at_us)
                  IS DISTINCT FROM (NEW.tenant_id, NEW.message_id, NEW.topic, NEW.order_id, NEW.user_id,
                                    NEW.show_id, NEW.session_id, NEW.created_at_us)))
EXECUTE FUNCTION onefold_guard_messages_{version}()
----
CREATE TRIGGER onefold_guard_messages_delete_{version} AFTER DELETE ON messages FOR EACH ROW
WHEN (OLD.status = 'QUEUED')
EXECUTE FUNCTION onefold_guard_messages_{version}()
----
CREATE TRIGGER onefold_guard_messages_truncate_{version} BEFORE TRUNCATE ON messages FOR EACH STATEMENT
EXECUTE FUNCTION onefold_guard_truncate_{version}('messages')
