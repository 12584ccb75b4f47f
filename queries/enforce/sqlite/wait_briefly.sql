-- A lock that is not given within 2 s is not waited for any longer, on this connection.
PRAGMA busy_timeout = 2000
