-- The guard of the message ledger on MySQL and MariaDB: a queued message is taken up (IN_FLIGHT, CONSUMED at once,
-- or removed), of the topics frozen.
-- A row that moves elsewhere in the same breath is judged by its old place and by its new one.
-- A row that an INSERT may replace is judged, too: REPLACE tells no trigger of it.
-- A queued message that leaves its place or topic by an UPDATE is judged as one that is removed there; one that is
-- given its first order stays.
-- To truncate runs no trigger here, and so cannot be refused: it needs the DROP privilege, which no service should
-- have.
-- For your own schema see orders.sql.
CREATE TRIGGER onefold_guard_messages_insert_{version} AFTER INSERT ON messages FOR EACH ROW
BEGIN
    IF NEW.status = 'IN_FLIGHT' THEN
        CALL onefold_guard_check_{version}(
            'messages', 'messages', NEW.tenant_id, NEW.message_id, NEW.order_id, NEW.user_id, NEW.show_id,
            NEW.session_id, NEW.topic, NEW.created_at_us);
    END IF;
END
----
CREATE TRIGGER onefold_guard_messages_replace_{version} BEFORE INSERT ON messages FOR EACH ROW
BEGIN
    DECLARE old_topic {id};
    DECLARE old_order_id {id};
    DECLARE old_user_id {id};
    DECLARE old_show_id {id};
    DECLARE old_session_id {id};
    DECLARE old_created_at_us BIGINT;
    DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
    IF NEW.status = 'IN_FLIGHT' THEN
        SELECT topic, order_id, user_id, show_id, session_id, created_at_us
        INTO old_topic, old_order_id, old_user_id, old_show_id, old_session_id, old_created_at_us
        FROM messages
        WHERE tenant_id = NEW.tenant_id AND message_id = NEW.message_id;
        IF old_created_at_us IS NOT NULL THEN
            CALL onefold_guard_check_{version}(
                'messages', 'messages', NEW.tenant_id, NEW.message_id, old_order_id, old_user_id, old_show_id,
                old_session_id, old_topic, old_created_at_us);
        END IF;
    END IF;
END
----
CREATE TRIGGER onefold_guard_messages_update_{version} AFTER UPDATE ON messages FOR EACH ROW
BEGIN
    IF (NEW.status = 'IN_FLIGHT'
        AND NOT ((OLD.status, OLD.tenant_id, OLD.message_id, OLD.topic, OLD.order_id, OLD.user_id, OLD.show_id,
                 OLD.session_id, OLD.created_at_us)
                <=> (NEW.status, NEW.tenant_id, NEW.message_id, NEW.topic, NEW.order_id, NEW.user_id,
                     NEW.show_id, NEW.session_id, NEW.created_at_us)))
       OR (OLD.status = 'QUEUED'
           AND (NEW.status = 'CONSUMED'
                OR NOT ((OLD.tenant_id, OLD.message_id, OLD.topic, COALESCE(OLD.order_id, NEW.order_id), OLD.user_id,
                         OLD.show_id, OLD.session_id, OLD.created_at_us)
                            <=> (NEW.tenant_id, NEW.message_id, NEW.topic, NEW.order_id, NEW.user_id, NEW.show_id,
                                 NEW.session_id, NEW.created_at_us)))) THEN
        IF NOT ((OLD.tenant_id, OLD.message_id, OLD.topic, OLD.order_id, OLD.user_id, OLD.show_id,
                 OLD.session_id, OLD.created_at_us)
                <=> (NEW.tenant_id, NEW.message_id, NEW.topic, NEW.order_id, NEW.user_id, NEW.show_id,
                     NEW.session_id, NEW.created_at_us)) THEN
            CALL onefold_guard_check_{version}(
                'messages', 'messages', OLD.tenant_id, OLD.message_id, OLD.order_id, OLD.user_id, OLD.show_id,
                OLD.session_id, OLD.topic, OLD.created_at_us);
        END IF;
        IF NEW.status IN ('IN_FLIGHT', 'CONSUMED') THEN
            CALL onefold_guard_check_{version}(
                'messages', 'messages', NEW.tenant_id, NEW.message_id, NEW.order_id, NEW.user_id, NEW.show_id,
                NEW.session_id, NEW.topic, NEW.created_at_us);
        END IF;
    END IF;
END
----
CREATE TRIGGER onefold_guard_messages_delete_{version} AFTER DELETE ON messages FOR EACH ROW
BEGIN
    IF OLD.status = 'QUEUED' THEN
        CALL onefold_guard_check_{version}(
            'messages', 'messages', OLD.tenant_id, OLD.message_id, OLD.order_id, OLD.user_id, OLD.show_id,
            OLD.session_id, OLD.topic, OLD.created_at_us);
    END IF;
END
