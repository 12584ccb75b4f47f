-- Says for the first time for how long what is kept: of two who do, one learns that it is said.
INSERT INTO onefold_retention (id, version, client_retry_us, queue_us, longest_replay_us, replay_us, dispute_us,
    archive_us, set_by, set_at_us, because)
VALUES (1, 1, :client_retry_us, :queue_us, :longest_replay_us, :replay_us, :dispute_us,
    :archive_us, :set_by, {now_us}, :because)
