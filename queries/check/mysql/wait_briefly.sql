-- In this session no lock is waited for longer than two seconds.
SET SESSION innodb_lock_wait_timeout = 2
