-- Payments whose charge another row tells of, too; at most 1,000.
SELECT * FROM {ledger}
WHERE (tenant_id, provider, provider_txn_id) IN (SELECT tenant_id, provider, provider_txn_id FROM {ledger}
                                                 WHERE provider_txn_id IS NOT NULL
                                                 GROUP BY tenant_id, provider, provider_txn_id HAVING COUNT(*) > 1)
ORDER BY tenant_id, provider, provider_txn_id, created_at_us, payment_id
LIMIT 1000
