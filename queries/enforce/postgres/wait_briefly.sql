-- A lock that is not given within 2 s is not waited for any longer, on this connection.
SET lock_timeout = '2s'
