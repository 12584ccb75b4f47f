-- Opens a pass for this transaction: a session variable, and a row that says of which connection it is.
INSERT INTO onefold_pass (token, connection_id) VALUES (@onefold_pass := :token, CONNECTION_ID())
