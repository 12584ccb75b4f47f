-- The guard of the message ledger on SQLite: a queued message is taken up (IN_FLIGHT, CONSUMED at once, or
-- removed), of the topics frozen.
-- A row that moves elsewhere in the same breath is judged by its old place and by its new one.
-- A queued message that leaves its place or topic by an UPDATE is judged as one that is removed there; one that is
-- given its first order stays.
-- A row that an INSERT or UPDATE may replace is judged, too: REPLACE tells no trigger of it.
-- For your own schema see orders.sql.
CREATE TRIGGER onefold_guard_messages_insert_{version} AFTER INSERT ON messages
WHEN NEW.status = 'IN_FLIGHT'
BEGIN
    INSERT INTO onefold_guard_check_{version}
    VALUES ('messages', 'messages', NEW.tenant_id, NEW.message_id, NEW.order_id, NEW.user_id, NEW.show_id,
            NEW.session_id, NEW.topic, NEW.created_at_us);
END
----
CREATE TRIGGER onefold_guard_messages_replace_{version} BEFORE INSERT ON messages
BEGIN
    INSERT INTO onefold_guard_check_{version}
    SELECT 'messages', 'messages', old_row.tenant_id, old_row.message_id, old_row.order_id, old_row.user_id,
           old_row.show_id, old_row.session_id, old_row.topic, old_row.created_at_us
    FROM messages AS old_row
    WHERE old_row.tenant_id = NEW.tenant_id AND old_row.message_id = NEW.message_id
      AND (NEW.status = 'IN_FLIGHT'
           OR (old_row.status = 'QUEUED'
               AND (NEW.status = 'CONSUMED'
                    OR (old_row.topic, COALESCE(old_row.order_id, NEW.order_id), old_row.user_id, old_row.show_id,
                        old_row.session_id, old_row.created_at_us)
                       IS NOT (NEW.topic, NEW.order_id, NEW.user_id, NEW.show_id, NEW.session_id, NEW.created_at_us))));
END
----
CREATE TRIGGER onefold_guard_messages_overwrite_{version} BEFORE UPDATE OF tenant_id, message_id ON messages
WHEN (OLD.tenant_id, OLD.message_id) IS NOT (NEW.tenant_id, NEW.message_id)
BEGIN
    INSERT INTO onefold_guard_check_{version}
    SELECT 'messages', 'messages', old_row.tenant_id, old_row.message_id, old_row.order_id, old_row.user_id,
           old_row.show_id, old_row.session_id, old_row.topic, old_row.created_at_us
    FROM messages AS old_row
    WHERE old_row.tenant_id = NEW.tenant_id AND old_row.message_id = NEW.message_id AND old_row.status = 'QUEUED';
END
----
CREATE TRIGGER onefold_guard_messages_update_{version} AFTER UPDATE ON messages
WHEN NEW.status = 'IN_FLIGHT'
     AND (OLD.status, OLD.tenant_id, OLD.message_id, OLD.topic, OLD.order_id, OLD.user_id, OLD.show_id,
          OLD.session_id, OLD.created_at_us)
         IS NOT (NEW.status, NEW.tenant_id, NEW.message_id, NEW.topic, NEW.order_id, NEW.user_id, NEW.show_id,
                 NEW.session_id, NEW.created_at_us)
     OR OLD.status = 'QUEUED'
     AND (NEW.status = 'CONSUMED'
          OR (OLD.tenant_id, OLD.message_id, OLD.topic, COALESCE(OLD.order_id, NEW.order_id), OLD.user_id,
              OLD.show_id, OLD.session_id, OLD.created_at_us)
                 IS NOT (NEW.tenant_id, NEW.message_id, NEW.topic, NEW.order_id, NEW.user_id, NEW.show_id,
                         NEW.session_id, NEW.created_at_us))
BEGIN
    INSERT INTO onefold_guard_check_{version}
    SELECT 'messages', 'messages', OLD.tenant_id, OLD.message_id, OLD.order_id, OLD.user_id, OLD.show_id,
           OLD.session_id, OLD.topic, OLD.created_at_us
    WHERE (OLD.tenant_id, OLD.message_id, OLD.topic, OLD.order_id, OLD.user_id, OLD.show_id, OLD.session_id,
           OLD.created_at_us)
          IS NOT (NEW.tenant_id, NEW.message_id, NEW.topic, NEW.order_id, NEW.user_id, NEW.show_id,
                  NEW.session_id, NEW.created_at_us);
    INSERT INTO onefold_guard_check_{version}
    SELECT 'messages', 'messages', NEW.tenant_id, NEW.message_id, NEW.order_id, NEW.user_id, NEW.show_id,
           NEW.session_id, NEW.topic, NEW.created_at_us
    WHERE NEW.status IN ('IN_FLIGHT', 'CONSUMED');
END
----
CREATE TRIGGER onefold_guard_messages_delete_{version} AFTER DELETE ON messages
WHEN OLD.status = 'QUEUED'
BEGIN
    INSERT INTO onefold_guard_check_{version}
    VALUES ('messages', 'messages', OLD.tenant_id, OLD.message_id, OLD.order_id, OLD.user_id, OLD.show_id,
            OLD.session_id, OLD.topic, OLD.created_at_us);
END
