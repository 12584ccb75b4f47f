-- Before a pass is closed: what its transaction has made PAID is judged while the pass is still there, not at commit.
SET CONSTRAINTS ALL IMMEDIATE
