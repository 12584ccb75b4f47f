-- The key of pseudonyms: one row, or none before the first redacted report.
SELECT value FROM onefold_secrets WHERE name = 'redact'
