-- Adds payments: one row each of :rows, in the columns' order.
INSERT INTO payments (payment_id, tenant_id, order_id, user_id, show_id, session_id, amount_minor,
                      refunded_minor, currency, provider, provider_txn_id, status, created_at_us,
                      captured_at_us, version)
VALUES :rows
