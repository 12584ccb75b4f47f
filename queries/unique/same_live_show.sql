-- Live orders of buyers who have several for one show; at most 1,000.
SELECT * FROM {ledger}
WHERE status IN (:live)
  AND (tenant_id, user_id, show_id) IN (SELECT tenant_id, user_id, show_id FROM {ledger}
                                        WHERE status IN (:live)
                                        GROUP BY tenant_id, user_id, show_id HAVING COUNT(*) > 1)
ORDER BY tenant_id, user_id, show_id, created_at_us, order_id
LIMIT 1000
