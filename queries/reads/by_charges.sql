-- Payments of one tenant that name one of some provider transactions.
SELECT * FROM {ledger}
WHERE tenant_id = :tenant_id AND provider_txn_id IN (:transactions)
