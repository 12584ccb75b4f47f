-- Keeps the secret of which a journal's public name is made: one row; where another was faster, a unique violation.
INSERT INTO onefold_secrets (name, value) VALUES ('journal', :value)
