-- Before a plan is applied: how many copies hold (1: that of the freeze, live, under its token, and looked at by the
-- triggers), and how many passes are there for everybody (0: ours are never committed).
SELECT (SELECT COUNT(*) FROM onefold_frozen
        WHERE freeze_id = :freeze_id AND token = :token AND ended = 0 AND lease_until_us > {now_us}
          AND EXISTS (SELECT 1 FROM onefold_gate WHERE id = 1 AND frozen > 0)) AS copies,
       (SELECT COUNT(*) FROM onefold_pass) AS passes
