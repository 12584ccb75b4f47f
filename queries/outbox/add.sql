-- Adds requests, one row each of :rows; a key is unique, so of two who add it one learns that it is there.
INSERT INTO onefold_outbox (request_key, kind, tenant_id, payment_id, provider, provider_txn_id, amount_minor, currency,
                            reason, requested_at_us, state)
VALUES :rows
