-- Takes our pass (:token) away again before the transaction that made it ends: 1 row. This is the one DELETE there is:
-- the row stands for nothing that happened, and it must never be committed, or it would let others through, too.
DELETE FROM onefold_pass WHERE token = :token
