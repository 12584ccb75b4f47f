-- How many rows of a ledger are in a scope by their own columns: at most :limit are counted.
SELECT COUNT(*) AS counted
FROM (
    SELECT 1 AS one
    FROM {ledger}
    WHERE 1 = 1
      AND tenant_id IN (:tenants) -- when tenants
      AND user_id IN (:users) -- when users
      AND show_id IN (:shows) -- when shows
      AND session_id IN (:sessions) -- when sessions
      AND created_at_us >= :from_us -- when from_us
      AND created_at_us < :to_us -- when to_us
    LIMIT :limit
) AS counted_rows
