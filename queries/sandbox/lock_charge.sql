-- Holds a charge still until the transaction ends, so that requests about it come one after the other: 1 row or 0.
UPDATE onefold_sandbox_charges SET charge = :charge
WHERE tenant_id = :tenant_id AND provider = :provider AND charge = :charge
