-- Adds the next part of a plan: the canonical text of some of its intents, with a comma between two, packed where it is long.
INSERT INTO onefold_plan_parts (plan_id, part, intents) VALUES (:plan_id, :part, :intents)
