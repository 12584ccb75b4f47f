-- What is left of a key whose record is archived: 0 or 1 row. Asked in the transaction that has just inserted a record
-- of that key, and that has read nothing before: where there is a row, the key is done, and the insert is undone.
-- :key_sha256 is the SHA-256, as 64 hex digits, over the tenant and the key, each with its length in bytes before it
-- as eight bytes, the highest first.
SELECT key_sha256, digest, state, exit_code, result_ref, first_seen_us, last_seen_us, archived_at_us,
       {now_us} AS now_us
FROM onefold_idempotency_archive
WHERE key_sha256 = :key_sha256
