-- Says anew for how long what is kept, if it is still as it was seen: 1 row or 0.
UPDATE onefold_retention
SET version = version + 1, client_retry_us = :client_retry_us, queue_us = :queue_us,
    longest_replay_us = :longest_replay_us, replay_us = :replay_us, dispute_us = :dispute_us,
    archive_us = :archive_us, set_by = :set_by, set_at_us = {now_us}, because = :because
WHERE id = 1 AND version = :version
