-- Adds the fingerprint of a key that is done; it is there once.
INSERT INTO onefold_idempotency_archive (key_sha256, digest, state, exit_code, result_ref, first_seen_us, last_seen_us,
    archived_at_us)
VALUES (:key_sha256, :digest, :state, :exit_code, :result_ref, :first_seen_us, :last_seen_us, {now_us})
