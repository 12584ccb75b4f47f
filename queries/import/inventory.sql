-- Adds holds: one row each of :rows, in the columns' order.
INSERT INTO inventory (hold_id, tenant_id, order_id, user_id, show_id, session_id, item, quantity,
                       status, created_at_us, expires_at_us, version)
VALUES :rows
