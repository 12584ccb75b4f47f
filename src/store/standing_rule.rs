//! The rule for approvals that stands in the journal's database. Whoever plans under a stricter one makes it
//! stricter for all; it becomes laxer only by the word of as many people as it asks for. Without it, planning from
//! a configuration that asks for no approval would be a way around it.

use serde::Serialize;

use super::freezes::json;
use super::journal::{Entry, Event};
use super::rows::Reader;
use super::sql::Values;
use super::{Connection, Store, Transaction};
use crate::core::approval::{Approval, ApprovalRule, Person};
use crate::core::time::Timestamp;
use crate::error::{Error, Result};

/// The rule that stands, and which in the row of rules it is: 0 where none was ever set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StandingRule {
    pub position: i64,
    pub rule: ApprovalRule,
}

/// What came of a word for another rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleWord {
    /// The rule stands as it was asked for.
    Stands,
    /// It stands now.
    Set,
    /// The word is noted; another person's is needed, too.
    Noted,
}

impl Store {
    pub async fn standing_rule(&self) -> Result<StandingRule> {
        let mut connection = self.journal().connection().await?;
        self.standing_rule_on(&mut connection).await
    }

    /// As [`Store::standing_rule`], in a transaction.
    pub(super) async fn standing_rule_on(&self, on: &mut Connection) -> Result<StandingRule> {
        let journal = self.journal();
        let statement = journal.statement(&self.queries, "approvals/rule", &Values::new())?;
        let rows = journal.fetch(on, &statement).await?;
        let Some(row) = rows.first() else { return Ok(StandingRule::default()) };
        let r = Reader::new(row, "onefold_rules");
        let standing = match r.int_or_null("position")? {
            Some(position) => {
                let rule = serde_json::from_str(&r.needed("rule")?).map_err(|e| r.bad("rule", e))?;
                StandingRule { position, rule }
            }
            None => StandingRule::default(),
        };
        // Each rule has an entry of its own: one that is written again by hand has none.
        let told = (r.int("times")?, r.text("last")?);
        let last = (standing.position > 0).then(|| standing.rule.to_string());
        if told != (standing.position, last) {
            return Err(Error::refused("the rule for approvals that stands is not the one that the journal tells of")
                .hint(
                    "somebody wrote into onefold_rules or onefold_journal by hand: have the database's owner put back \
                     what was there; `onefold history verify` and its entries approval-rule-set say what that is",
                ));
        }
        Ok(standing)
    }

    /// Makes the rule that stands as strict as this one, too, and gives it.
    pub async fn tighten_rule(
        &self,
        rule: &ApprovalRule,
        (by, actor): (&Person, &str),
        at: Timestamp,
    ) -> Result<ApprovalRule> {
        self.journal().transaction(async |tx| self.tighten_rule_on(tx, rule, (by, actor), at).await).await
    }

    /// As [`Store::tighten_rule`], in a transaction.
    pub(super) async fn tighten_rule_on(
        &self,
        tx: &mut Transaction,
        rule: &ApprovalRule,
        by: (&Person, &str),
        at: Timestamp,
    ) -> Result<ApprovalRule> {
        let standing = self.standing_rule_on(tx).await?;
        if !standing.rule.is_at_least(rule) {
            let both = standing.rule.and(rule);
            self.set_rule_on(tx, &standing, &both, by, at, "a configuration asks for it").await?;
            return Ok(both);
        }
        Ok(standing.rule)
    }

    /// Gives a word for this rule in the place of the one that stands. A stricter one stands at once, and a laxer
    /// one with the last of the words that are needed.
    pub async fn approve_rule(&self, rule: &ApprovalRule, word: &Approval) -> Result<RuleWord> {
        self.journal()
            .transaction(async |tx| {
                let standing = self.standing_rule_on(tx).await?;
                if standing.rule == *rule {
                    return Ok(RuleWord::Stands);
                }
                let by = (&word.by, word.actor.as_str());
                let mut because = word.because.clone();
                if !rule.is_at_least(&standing.rule) {
                    let mut round = 0;
                    let (digest, mut words) = loop {
                        let digest = rule.digest_after(standing.position, round);
                        let words = self.approvals_on(tx, &digest).await?;
                        if !ApprovalRule::are_over(&words, word.at) {
                            break (digest, words);
                        }
                        round += 1;
                    };
                    let plan_id = format!("RULE-{}", standing.position.saturating_add(1));
                    let word = Approval { plan_id, digest, ..word.clone() };
                    if words.iter().all(|given| given.by != word.by) {
                        self.approve_on(tx, &word).await?;
                        words.push(word);
                    }
                    if !standing.rule.yields_to(&words) {
                        return Ok(RuleWord::Noted);
                    }
                    because = words
                        .iter()
                        .map(|w| format!("{}: {}", w.by, w.because))
                        .collect::<Vec<_>>()
                        .join("; ");
                }
                self.set_rule_on(tx, &standing, rule, by, word.at, &because).await?;
                Ok(RuleWord::Set)
            })
            .await
    }

    async fn set_rule_on(
        &self,
        tx: &mut Transaction,
        before: &StandingRule,
        rule: &ApprovalRule,
        (by, actor): (&Person, &str),
        at: Timestamp,
        because: &str,
    ) -> Result<()> {
        let journal = self.journal();
        let values = Values::new()
            .bind("position", before.position.saturating_add(1))
            .bind("rule", json(rule)?)
            .bind("os_user", by.os_user.as_str())
            .bind("login", by.login.as_str())
            .bind("actor", actor)
            .bind("at_us", at.micros());
        let statement = journal.statement(&self.queries, "approvals/add_rule", &values)?;
        if !journal.insert(tx, &statement).await? {
            return Err(Error::clash("somebody else has set the rule for approvals in this moment"));
        }
        let mut entry = Entry::new(Event::RuleSet, actor, at).note(because);
        (entry.from, entry.to) = (Some(before.rule.to_string()), Some(rule.to_string()));
        self.append_on(tx, &entry).await
    }
}
