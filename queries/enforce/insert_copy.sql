-- Adds the copy of a freeze. The lease is counted by this database's own clock.
INSERT INTO onefold_frozen (freeze_id, token, owner, reason, auto_payment, paid, ticketing, stock_release, messages,
                            tenants, users, shows, sessions, topics, from_us, to_us, narrowing, lease_until_us, ended)
VALUES (:freeze_id, :token, :owner, :reason, :auto_payment, :paid, :ticketing, :stock_release, :messages,
        :tenants, :users, :shows, :sessions, :topics, :from_us, :to_us, :narrowing, {now_us} + :lease_left_us, :ended)
