-- Writes what became of a charge: 1 row.
UPDATE onefold_sandbox_charges
SET status = :status, refunded_minor = :refunded_minor
WHERE tenant_id = :tenant_id AND provider = :provider AND charge = :charge
