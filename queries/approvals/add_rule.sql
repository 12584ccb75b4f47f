-- Puts a rule after the one that stood: its place is there once.
INSERT INTO onefold_rules (position, rule, os_user, login, actor, at_us)
VALUES (:position, :rule, :os_user, :login, :actor, :at_us)
