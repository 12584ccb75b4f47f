-- The journal, its heads, approvals and the rules for them are only ever added to: no row is changed, taken away or written over, and no
-- entry comes in outside a chain. Safe to run twice.
CREATE TRIGGER IF NOT EXISTS onefold_journal_is_kept_as_it_is BEFORE UPDATE ON onefold_journal
BEGIN SELECT RAISE(ABORT, 'onefold_journal is append-only: no entry is changed'); END;
CREATE TRIGGER IF NOT EXISTS onefold_journal_is_kept BEFORE DELETE ON onefold_journal
BEGIN SELECT RAISE(ABORT, 'onefold_journal is append-only: no entry is taken away'); END;
CREATE TRIGGER IF NOT EXISTS onefold_journal_is_not_replaced BEFORE INSERT ON onefold_journal
WHEN EXISTS (SELECT 1 FROM onefold_journal WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'onefold_journal is append-only: no entry is written over'); END;
CREATE TRIGGER IF NOT EXISTS onefold_journal_is_chained AFTER INSERT ON onefold_journal
WHEN NEW.chain IS NULL OR NEW.hash IS NULL OR NEW.seq <= 0
BEGIN SELECT RAISE(ABORT, 'onefold_journal is a chain: an entry stands in one, behind those before it'); END;
CREATE TRIGGER IF NOT EXISTS onefold_heads_are_kept_as_they_are BEFORE UPDATE ON onefold_heads
BEGIN SELECT RAISE(ABORT, 'onefold_heads is append-only: no head is changed'); END;
CREATE TRIGGER IF NOT EXISTS onefold_heads_are_kept BEFORE DELETE ON onefold_heads
BEGIN SELECT RAISE(ABORT, 'onefold_heads is append-only: no head is taken away'); END;
CREATE TRIGGER IF NOT EXISTS onefold_heads_are_not_replaced BEFORE INSERT ON onefold_heads
WHEN EXISTS (SELECT 1 FROM onefold_heads WHERE position = NEW.position)
BEGIN SELECT RAISE(ABORT, 'onefold_heads is append-only: no head is written over'); END;
CREATE TRIGGER IF NOT EXISTS onefold_approvals_are_kept_as_they_are BEFORE UPDATE ON onefold_approvals
BEGIN SELECT RAISE(ABORT, 'onefold_approvals is append-only: no word is changed'); END;
CREATE TRIGGER IF NOT EXISTS onefold_approvals_are_kept BEFORE DELETE ON onefold_approvals
BEGIN SELECT RAISE(ABORT, 'onefold_approvals is append-only: no word is taken away'); END;
CREATE TRIGGER IF NOT EXISTS onefold_rules_are_kept_as_they_are BEFORE UPDATE ON onefold_rules
BEGIN SELECT RAISE(ABORT, 'onefold_rules is append-only: no rule is changed'); END;
CREATE TRIGGER IF NOT EXISTS onefold_rules_are_kept BEFORE DELETE ON onefold_rules
BEGIN SELECT RAISE(ABORT, 'onefold_rules is append-only: no rule is taken away'); END;
CREATE TRIGGER IF NOT EXISTS onefold_rules_are_not_replaced BEFORE INSERT ON onefold_rules
WHEN EXISTS (SELECT 1 FROM onefold_rules WHERE position = NEW.position)
BEGIN SELECT RAISE(ABORT, 'onefold_rules is append-only: no rule is written over'); END;
