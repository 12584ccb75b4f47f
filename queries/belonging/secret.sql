-- The secret of which the journal's public name is made: one row, or none before it was set up.
SELECT value FROM onefold_secrets WHERE name = 'journal'
