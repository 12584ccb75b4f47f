-- First in a transaction that changes a copy: waits until no guarded write is under way, and makes new ones wait.
UPDATE onefold_gate SET generation = generation + 1 WHERE id = 1
