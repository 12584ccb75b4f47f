-- Keeps the key of pseudonyms for good: one row; where another process was faster, a unique violation.
INSERT INTO onefold_secrets (name, value) VALUES ('redact', :value)
