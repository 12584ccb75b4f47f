-- Adds a request.
INSERT INTO onefold_sandbox_requests (idempotency_key, tenant_id, provider, charge, kind, amount_minor, currency,
                                      status, asked, made_at_us)
VALUES (:idempotency_key, :tenant_id, :provider, :charge, :kind, :amount_minor, :currency, :status, :asked, :made_at_us)
