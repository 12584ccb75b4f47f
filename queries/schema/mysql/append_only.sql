-- The journal, its heads, approvals and the rules for them are only ever added to: no row is changed or taken away, and
-- no entry comes in outside a chain. Safe to run twice.
-- No trigger sees a whole table being emptied: that takes the right to drop it, which onefold's user does not need.
CREATE TRIGGER IF NOT EXISTS onefold_journal_is_kept_as_it_is BEFORE UPDATE ON onefold_journal
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'onefold_journal is append-only: no entry is changed';
CREATE TRIGGER IF NOT EXISTS onefold_journal_is_kept BEFORE DELETE ON onefold_journal
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'onefold_journal is append-only: no entry is taken away';
CREATE TRIGGER IF NOT EXISTS onefold_heads_are_kept_as_they_are BEFORE UPDATE ON onefold_heads
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'onefold_heads is append-only: no head is changed';
CREATE TRIGGER IF NOT EXISTS onefold_heads_are_kept BEFORE DELETE ON onefold_heads
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'onefold_heads is append-only: no head is taken away';
CREATE TRIGGER IF NOT EXISTS onefold_approvals_are_kept_as_they_are BEFORE UPDATE ON onefold_approvals
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'onefold_approvals is append-only: no word is changed';
CREATE TRIGGER IF NOT EXISTS onefold_approvals_are_kept BEFORE DELETE ON onefold_approvals
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'onefold_approvals is append-only: no word is taken away';
CREATE TRIGGER IF NOT EXISTS onefold_journal_is_chained AFTER INSERT ON onefold_journal
FOR EACH ROW BEGIN IF NEW.chain IS NULL OR NEW.hash IS NULL OR NEW.seq <= 0 THEN SIGNAL SQLSTATE '45000'
    SET MESSAGE_TEXT = 'onefold_journal is a chain: an entry stands in one, behind those before it'; END IF; END;
CREATE TRIGGER IF NOT EXISTS onefold_rules_are_kept_as_they_are BEFORE UPDATE ON onefold_rules
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'onefold_rules is append-only: no rule is changed';
CREATE TRIGGER IF NOT EXISTS onefold_rules_are_kept BEFORE DELETE ON onefold_rules
FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'onefold_rules is append-only: no rule is taken away';
