-- The orders of a database without the order ledger: no row.
SELECT '' AS tenant_id, '' AS order_id, '' AS user_id, '' AS show_id, '' AS session_id, 0 AS created_at_us
FROM onefold_gate
WHERE 1 = 0
