-- In this transaction no lock is waited for longer than two seconds.
SET LOCAL lock_timeout = '2s'
