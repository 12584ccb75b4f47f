-- Adds messages: one row each of :rows, in the columns' order.
INSERT INTO messages (message_id, tenant_id, message_key, topic, order_id, user_id, show_id,
                      session_id, status, attempts, trace_id, created_at_us, version)
VALUES :rows
