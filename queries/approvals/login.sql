-- Who we are to the database: 1 row; empty where it knows no logins.
SELECT {login} AS login
