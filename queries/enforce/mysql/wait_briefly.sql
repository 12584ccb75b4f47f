-- A lock that is not given within 2 s is not waited for any longer, on this connection.
SET SESSION innodb_lock_wait_timeout = 2, SESSION lock_wait_timeout = 2
