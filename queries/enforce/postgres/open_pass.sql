-- Opens a pass for this transaction: the setting ends with it, and its row is there for nobody else.
INSERT INTO onefold_pass (token) SELECT set_config('onefold.pass', :token, true)
