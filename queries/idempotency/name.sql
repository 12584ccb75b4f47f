-- Says that a key is about an order ('orders') or a payment ('payments'): 1 row, or it is said already, which is refused.
INSERT INTO onefold_idempotency_names (tenant_id, idempotency_key, ledger, row_id, named_at_us)
VALUES (:tenant_id, :idempotency_key, :ledger, :row_id, {now_us})
