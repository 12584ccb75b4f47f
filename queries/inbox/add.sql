-- Says that a consumer does the work of a message's key, first in the transaction of that work: it is unique, so where
-- it is there already the work has been done, and there is nothing left to do but to acknowledge the message.
INSERT INTO onefold_inbox (tenant_id, consumer, message_key, done_at_us)
VALUES (:tenant_id, :consumer, :message_key, {now_us})
