-- A table that is taken back at once: where it cannot be made, nothing can be written.
CREATE TABLE onefold_check (x INTEGER)
