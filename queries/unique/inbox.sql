-- What a consumer of messages has done: it adds the message's key first in the transaction of its work, and where the
-- key is there already it has done that work before.
CREATE TABLE IF NOT EXISTS onefold_inbox (
    tenant_id   {id} NOT NULL,
    consumer    {id} NOT NULL,
    message_key {id} NOT NULL,
    done_at_us  BIGINT NOT NULL,
    result      {long},
    PRIMARY KEY (tenant_id, consumer, message_key)
)
