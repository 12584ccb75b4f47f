-- Opens a pass for the transaction that has just begun to write.
INSERT INTO onefold_pass (token) VALUES (:token)
