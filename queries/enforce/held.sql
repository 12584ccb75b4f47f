-- Which freezes stop what is `asked` (effect, ledger, tenant_id, row_id, order_id, user_id, show_id, session_id, topic,
-- created_at_us): the FROM clause of every dialect's check, after `asked`. `f` is the freeze.
--
-- A row that hangs on an order stands where the order does, and also where it says itself: either place holds it. What
-- is not known holds it, too: an order that is not in this database, a session that neither row names. A message
-- without order, and without user or show, belongs to no purchase: only a scope that names none of these holds it. The
-- window is on the order's created_at; a row without order has its own.
LEFT JOIN onefold_guard_known_orders_{version} AS o
       ON asked.ledger <> 'orders' AND o.tenant_id = asked.tenant_id AND o.order_id = asked.order_id
JOIN onefold_frozen AS f ON f.ended = 0 AND f.lease_until_us > {now_us}
WHERE CASE asked.effect
          WHEN 'auto-payment' THEN f.auto_payment
          WHEN 'paid' THEN f.paid
          WHEN 'ticketing' THEN f.ticketing
          WHEN 'stock-release' THEN f.stock_release
          ELSE f.messages
      END = 1
  AND (f.tenants IS NULL
       OR EXISTS (SELECT 1 FROM onefold_frozen_scope AS s
                  WHERE s.freeze_id = f.freeze_id AND s.kind = 'tenant' AND s.value = asked.tenant_id))
  AND (f.users IS NULL
       OR (COALESCE(asked.user_id, o.user_id) IS NULL AND asked.order_id IS NOT NULL)
       OR EXISTS (SELECT 1 FROM onefold_frozen_scope AS s
                  WHERE s.freeze_id = f.freeze_id AND s.kind = 'user' AND s.value IN (asked.user_id, o.user_id)))
  AND (f.shows IS NULL
       OR (COALESCE(asked.show_id, o.show_id) IS NULL AND asked.order_id IS NOT NULL)
       OR EXISTS (SELECT 1 FROM onefold_frozen_scope AS s
                  WHERE s.freeze_id = f.freeze_id AND s.kind = 'show' AND s.value IN (asked.show_id, o.show_id)))
  AND (f.sessions IS NULL
       OR (COALESCE(asked.session_id, o.session_id) IS NULL
           AND (asked.order_id IS NOT NULL OR (asked.user_id IS NOT NULL AND asked.show_id IS NOT NULL)))
       OR EXISTS (SELECT 1 FROM onefold_frozen_scope AS s
                  WHERE s.freeze_id = f.freeze_id AND s.kind = 'session'
                    AND s.value IN (asked.session_id, o.session_id)))
  AND (asked.effect <> 'messages' OR f.topics IS NULL
       OR EXISTS (SELECT 1 FROM onefold_frozen_scope AS s
                  WHERE s.freeze_id = f.freeze_id AND s.kind = 'topic' AND s.value = asked.topic))
  AND (f.from_us IS NULL OR (asked.ledger <> 'orders' AND asked.order_id IS NOT NULL AND o.order_id IS NULL)
       OR COALESCE(o.created_at_us, asked.created_at_us) >= f.from_us)
  AND (f.to_us IS NULL OR (asked.ledger <> 'orders' AND asked.order_id IS NOT NULL AND o.order_id IS NULL)
       OR COALESCE(o.created_at_us, asked.created_at_us) < f.to_us)
  AND (f.narrowing = 0
       OR EXISTS (SELECT 1 FROM onefold_frozen_scope AS s
                  WHERE s.freeze_id = f.freeze_id AND s.narrowing = f.narrowing AND s.tenant_id = asked.tenant_id
                    AND ((s.kind = 'orders' AND s.value = asked.order_id)
                         OR (s.kind = asked.ledger AND s.value = asked.row_id))))
  AND (asked.effect <> 'paid'
       OR NOT EXISTS (SELECT 1 FROM onefold_guard_known_payments_{version} AS p
                      JOIN onefold_frozen_scope AS s
                        ON s.freeze_id = f.freeze_id AND s.kind = 'captured' AND s.value = p.status
                      WHERE p.tenant_id = asked.tenant_id AND p.order_id = asked.order_id))
ORDER BY f.freeze_id
LIMIT 1
