-- Adds orders: one row each of :rows, in the columns' order.
INSERT INTO orders (order_id, tenant_id, user_id, show_id, session_id, idempotency_key, item, quantity,
                    amount_minor, currency, status, source, trace_id, created_at_us, version)
VALUES :rows
