-- Whether a copy already has the rows of this narrowing: 1 row or none.
SELECT narrowing FROM onefold_frozen_scope WHERE freeze_id = :freeze_id AND narrowing = :narrowing LIMIT 1
