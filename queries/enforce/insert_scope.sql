-- Adds what a copy names; :rows are (freeze_id, kind, narrowing, tenant_id, value).
INSERT INTO onefold_frozen_scope (freeze_id, kind, narrowing, tenant_id, value) VALUES :rows
