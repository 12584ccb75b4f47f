-- What the sandbox knows of one charge: 0 or 1 row.
SELECT tenant_id, provider, charge, status, amount_minor, refunded_minor, currency, captured_at_us, behaviour
FROM onefold_sandbox_charges
WHERE tenant_id = :tenant_id AND provider = :provider AND charge = :charge
