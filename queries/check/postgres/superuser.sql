-- One row where the user of this session is a superuser, else none.
SELECT CAST(rolname AS text) AS rolname FROM pg_roles WHERE rolname = current_user AND rolsuper
