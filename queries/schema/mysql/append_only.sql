-- The journal and its heads are only ever added to: no entry is changed or taken away. Safe to run twice.
-- No trigger sees a whole table being emptied: that takes the right to drop it, which onefold's user does not need.
CREATE TRIGGER IF NOT EXISTS onefold_journal_is_kept_as_it_is BEFORE UPDATE ON onefold_journal
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'onefold_journal is append-only: no entry is changed';
CREATE TRIGGER IF NOT EXISTS onefold_journal_is_kept BEFORE DELETE ON onefold_journal
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'onefold_journal is append-only: no entry is taken away';
CREATE TRIGGER IF NOT EXISTS onefold_heads_are_kept_as_they_are BEFORE UPDATE ON onefold_heads
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'onefold_heads is append-only: no head is changed';
CREATE TRIGGER IF NOT EXISTS onefold_heads_are_kept BEFORE DELETE ON onefold_heads
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'onefold_heads is append-only: no head is taken away';
