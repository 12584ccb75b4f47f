-- Who needs which right where: 1 row.
SELECT quote_ident(current_user)::text AS name, quote_ident(current_database())::text AS place
