-- Resets the session variable that named a pass.
SET @onefold_pass = NULL
