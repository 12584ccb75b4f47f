"""The core of a plan in SQL, in stages, on the ledgers as onefold imports them: {scope} narrows it, {analyze} is the
database's word for taking statistics. The last statement tells what happens."""
STAGES = ["near", "stepped", "windowed", "grouped", "charges", "holds", "kept", "lost"]
SQL = """
CREATE TABLE bench_near AS
SELECT o.order_id, o.tenant_id, o.user_id, o.show_id, o.session_id, o.quantity, o.amount_minor, o.created_at_us
FROM orders o
JOIN (
    SELECT tenant_id, user_id, show_id, session_id
    FROM orders
    WHERE status IN ('PENDING_PAYMENT', 'PAID', 'TICKETED') {scope}
    GROUP BY tenant_id, user_id, show_id, session_id
    HAVING COUNT(*) > 1
) several ON several.tenant_id = o.tenant_id AND several.user_id = o.user_id
         AND several.show_id = o.show_id AND several.session_id = o.session_id
WHERE o.status IN ('PENDING_PAYMENT', 'PAID', 'TICKETED');
CREATE TABLE bench_stepped AS
SELECT near.*, CASE WHEN created_at_us - LAG(created_at_us) OVER (
           PARTITION BY tenant_id, user_id, show_id, session_id ORDER BY created_at_us, order_id
       ) > 120000000 THEN 1 ELSE 0 END AS begins
FROM bench_near near;
CREATE TABLE bench_windowed AS
SELECT stepped.*, SUM(begins) OVER (
           PARTITION BY tenant_id, user_id, show_id, session_id ORDER BY created_at_us, order_id
       ) AS nth
FROM bench_stepped stepped;
CREATE TABLE bench_grouped AS
SELECT * FROM (
    SELECT windowed.*, MIN(order_id) OVER (PARTITION BY tenant_id, user_id, show_id, session_id, nth) AS intent,
           COUNT(*) OVER (PARTITION BY tenant_id, user_id, show_id, session_id, nth) AS size
    FROM bench_windowed windowed
) grouped
WHERE size > 1;
CREATE INDEX bench_grouped_by_order ON bench_grouped (order_id);
{analyze} bench_grouped;
CREATE TABLE bench_charges AS
SELECT g.order_id, p.amount_minor, p.captured_at_us
FROM bench_grouped g JOIN payments p ON p.tenant_id = g.tenant_id AND p.order_id = g.order_id
WHERE p.status = 'CAPTURED' AND p.amount_minor > p.refunded_minor;
CREATE TABLE bench_holds AS
SELECT g.order_id, h.quantity
FROM bench_grouped g JOIN inventory h ON h.tenant_id = g.tenant_id AND h.order_id = g.order_id
WHERE h.status IN ('HELD', 'CONFIRMED');
CREATE TABLE bench_kept AS
SELECT intent, order_id FROM (
    SELECT g.intent, g.order_id, ROW_NUMBER() OVER (
               PARTITION BY g.intent ORDER BY paid.paid_at_us, g.created_at_us, g.order_id
           ) AS place
    FROM bench_grouped g
    JOIN (
        SELECT order_id, SUM(amount_minor) AS amount, MAX(captured_at_us) AS paid_at_us FROM bench_charges GROUP BY order_id
    ) paid ON paid.order_id = g.order_id AND paid.amount >= g.amount_minor
    JOIN (
        SELECT order_id, SUM(quantity) AS quantity FROM bench_holds GROUP BY order_id
    ) held ON held.order_id = g.order_id AND held.quantity >= g.quantity
) candidates
WHERE place = 1;
CREATE TABLE bench_lost AS
SELECT g.order_id, g.tenant_id
FROM bench_grouped g JOIN bench_kept k ON k.intent = g.intent
WHERE g.order_id <> k.order_id;
CREATE INDEX bench_lost_by_order ON bench_lost (order_id);
{analyze} bench_lost;
SELECT (SELECT COUNT(*) FROM bench_kept) AS kept, (SELECT COUNT(*) FROM bench_lost) AS closed,
       (SELECT COUNT(*) FROM bench_charges c JOIN bench_lost l ON l.order_id = c.order_id) AS refunds,
       (SELECT COUNT(*) FROM bench_holds h JOIN bench_lost l ON l.order_id = h.order_id) AS released,
       (SELECT COUNT(*) FROM bench_lost l JOIN messages m ON m.tenant_id = l.tenant_id AND m.order_id = l.order_id
        WHERE m.status IN ('QUEUED', 'IN_FLIGHT', 'DEAD')) AS quarantined;
"""
