-- Tells the sandbox of a charge.
INSERT INTO onefold_sandbox_charges (tenant_id, provider, charge, status, amount_minor, refunded_minor, currency,
                                     captured_at_us, behaviour)
VALUES (:tenant_id, :provider, :charge, :status, :amount_minor, :refunded_minor, :currency, :captured_at_us, :behaviour)
