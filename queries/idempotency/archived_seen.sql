-- Notes that an archived key was asked for again: 1 row.
UPDATE onefold_idempotency_archive SET last_seen_us = {now_us} WHERE key_sha256 = :key_sha256
