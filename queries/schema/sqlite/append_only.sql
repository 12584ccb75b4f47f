-- The journal and its heads are only ever added to: no entry is changed, taken away or written over. Safe to run twice.
CREATE TRIGGER IF NOT EXISTS onefold_journal_is_kept_as_it_is BEFORE UPDATE ON onefold_journal
BEGIN SELECT RAISE(ABORT, 'onefold_journal is append-only: no entry is changed'); END;
CREATE TRIGGER IF NOT EXISTS onefold_journal_is_kept BEFORE DELETE ON onefold_journal
BEGIN SELECT RAISE(ABORT, 'onefold_journal is append-only: no entry is taken away'); END;
CREATE TRIGGER IF NOT EXISTS onefold_journal_is_not_replaced BEFORE INSERT ON onefold_journal
WHEN EXISTS (SELECT 1 FROM onefold_journal WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'onefold_journal is append-only: no entry is written over'); END;
CREATE TRIGGER IF NOT EXISTS onefold_heads_are_kept_as_they_are BEFORE UPDATE ON onefold_heads
BEGIN SELECT RAISE(ABORT, 'onefold_heads is append-only: no head is changed'); END;
CREATE TRIGGER IF NOT EXISTS onefold_heads_are_kept BEFORE DELETE ON onefold_heads
BEGIN SELECT RAISE(ABORT, 'onefold_heads is append-only: no head is taken away'); END;
CREATE TRIGGER IF NOT EXISTS onefold_heads_are_not_replaced BEFORE INSERT ON onefold_heads
WHEN EXISTS (SELECT 1 FROM onefold_heads WHERE position = NEW.position)
BEGIN SELECT RAISE(ABORT, 'onefold_heads is append-only: no head is written over'); END;
