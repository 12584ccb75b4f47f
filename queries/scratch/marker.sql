-- What proves that a scratch is a drill's own, and which one's.
CREATE TABLE {marker} (
    name           {id} NOT NULL PRIMARY KEY,
    made_by        {text} NOT NULL,
    lease_until_us BIGINT NOT NULL
)
