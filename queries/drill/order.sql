-- The effect: one order, PAID. In your service this is your own statement.
INSERT INTO orders (tenant_id, order_id, user_id, show_id, idempotency_key, item, quantity, amount_minor, currency,
    status, created_at_us, version)
VALUES (:tenant_id, :order_id, :user_id, :show_id, :idempotency_key, :item, :quantity, :amount_minor, :currency,
    'PAID', {now_us}, '1')
