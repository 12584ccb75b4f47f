-- The chains that no head ends, in their order.
SELECT chain
FROM onefold_journal
WHERE chain IS NOT NULL AND chain NOT IN (SELECT chain FROM onefold_heads)
GROUP BY chain
ORDER BY chain
