"""The core of a plan in DuckDB: plan_duckdb.py FOLDER. Prints what happens, as JSON."""
import json
import sys

import duckdb

SQL = """
WITH live AS (
    SELECT order_id, tenant_id, user_id, show_id, session_id, quantity::BIGINT AS quantity,
           amount_minor::BIGINT AS amount_minor, created_at
    FROM read_csv(? || '/orders.csv', all_varchar = true)
    WHERE status IN ('PENDING_PAYMENT', 'PAID', 'TICKETED')
), near AS MATERIALIZED (
    SELECT *, created_at::TIMESTAMPTZ AS made_at FROM live
    QUALIFY count(*) OVER (PARTITION BY tenant_id, user_id, show_id, session_id) > 1
), stepped AS (
    SELECT *, coalesce(made_at - lag(made_at) OVER w > INTERVAL 2 MINUTE, false) AS begins FROM near
    WINDOW w AS (PARTITION BY tenant_id, user_id, show_id, session_id ORDER BY made_at, order_id)
), windowed AS (
    SELECT *, sum(begins::INT) OVER w AS nth FROM stepped
    WINDOW w AS (PARTITION BY tenant_id, user_id, show_id, session_id ORDER BY made_at, order_id)
), grouped AS MATERIALIZED (
    SELECT *, min(order_id) OVER g AS intent FROM windowed
    WINDOW g AS (PARTITION BY tenant_id, user_id, show_id, session_id, nth) QUALIFY count(*) OVER g > 1
), charges AS MATERIALIZED (
    SELECT order_id, p.amount_minor::BIGINT AS amount, p.captured_at::TIMESTAMPTZ AS captured_at
    FROM read_csv(? || '/payments.csv', all_varchar = true) p JOIN grouped USING (order_id)
    WHERE status = 'CAPTURED' AND p.amount_minor::BIGINT > p.refunded_minor::BIGINT
), holds AS MATERIALIZED (
    SELECT order_id, h.quantity::BIGINT AS quantity
    FROM read_csv(? || '/inventory.csv', all_varchar = true) h JOIN grouped USING (order_id)
    WHERE status IN ('HELD', 'CONFIRMED')
), paid AS (SELECT order_id, sum(amount) AS amount, max(captured_at) AS paid_at FROM charges GROUP BY 1),
held AS (SELECT order_id, sum(quantity) AS quantity FROM holds GROUP BY 1),
kept AS MATERIALIZED (
    SELECT intent, order_id FROM grouped g JOIN paid USING (order_id) JOIN held USING (order_id)
    WHERE paid.amount >= g.amount_minor AND held.quantity >= g.quantity
    QUALIFY row_number() OVER (PARTITION BY intent ORDER BY paid_at, made_at, order_id) = 1
), lost AS MATERIALIZED (
    SELECT g.order_id FROM grouped g JOIN kept k USING (intent) WHERE g.order_id <> k.order_id
)
SELECT (SELECT count(*) FROM kept), (SELECT count(*) FROM lost),
       (SELECT count(*) FROM charges JOIN lost USING (order_id)), (SELECT count(*) FROM holds JOIN lost USING (order_id)),
       (SELECT count(*) FROM read_csv(? || '/messages.csv', all_varchar = true) JOIN lost USING (order_id)
        WHERE status IN ('QUEUED', 'IN_FLIGHT', 'DEAD'))
"""
counts = duckdb.connect(config={"threads": 2}).execute(SQL, [sys.argv[1]] * 4).fetchone()
print(json.dumps(dict(zip(["kept", "closed", "refunds", "released", "quarantined"], counts))))
