//! Approvals: each written once, never changed; and the moment at which a plan is begun, which asks for them.

use std::collections::BTreeMap;

use super::journal::{Entry, Event};
use super::plans::{PlanParts, SavedPlan, changed};
use super::rows::Reader;
use super::sql::Values;
use super::{Connection, Store, Transaction};
use crate::core::approval::{Approval, ApprovalRule, Person};
use crate::core::money::Currency;
use crate::core::plan::Plan;
use crate::core::tally::Tally;
use crate::core::time::Timestamp;
use crate::error::{Error, Result};

impl Store {
    /// Writes somebody's word for a plan; whether it was not there yet.
    pub async fn approve(&self, approval: &Approval) -> Result<bool> {
        let journal = self.journal();
        let mut tx = journal.begin().await?;
        if !self.approve_on(&mut tx, approval).await? {
            tx.rollback().await.map_err(|e| journal.failed(&e))?;
            return Ok(false);
        }
        journal.commit(tx).await?;
        Ok(true)
    }

    /// As [`Store::approve`], in a transaction; one in which the word was there already cannot go on.
    pub(super) async fn approve_on(&self, tx: &mut Transaction, approval: &Approval) -> Result<bool> {
        let journal = self.journal();
        let values = Values::new()
            .bind("digest", approval.digest.as_str())
            .bind("os_user", approval.by.os_user.as_str())
            .bind("login", approval.by.login.as_str())
            .bind("plan_id", approval.plan_id.as_str())
            .bind("actor", approval.actor.as_str())
            .bind("because", approval.because.as_str())
            .bind("at_us", approval.at.micros());
        let statement = journal.statement(&self.queries, "approvals/add", &values)?;
        if !journal.insert(tx, &statement).await? {
            return Ok(false);
        }
        let entry = Entry::new(Event::Approved, &approval.actor, approval.at)
            .plan(&approval.plan_id)
            .note(told(approval));
        self.append_on(tx, &entry).await?;
        Ok(true)
    }

    /// Whose word there is for a decision, the first first.
    pub async fn approvals(&self, digest: &str) -> Result<Vec<Approval>> {
        let mut connection = self.journal().connection().await?;
        self.approvals_on(&mut connection, digest).await
    }

    pub(super) async fn approvals_on(&self, on: &mut Connection, digest: &str) -> Result<Vec<Approval>> {
        let journal = self.journal();
        let values = Values::new().bind("digest", digest);
        let statement = journal.statement(&self.queries, "approvals/of_digest", &values)?;
        let decode = |row| {
            let r = Reader::new(row, "onefold_approvals");
            let approval = Approval {
                plan_id: r.needed("plan_id")?,
                digest: r.needed("digest")?,
                by: Person { os_user: r.needed("os_user")?, login: r.needed("login")? },
                actor: r.needed("actor")?,
                because: r.needed("because")?,
                at: r.time("at_us")?,
            };
            // Only a word counts of which the journal tells just so: whose it is, and for what.
            Ok((r.text("told")?.is_some_and(|note| note == told(&approval))).then_some(approval))
        };
        journal.fetch(on, &statement).await?.iter().filter_map(|row| decode(row).transpose()).collect()
    }

    /// The rule that a plan comes under: this one, the one that stands and the one that it was made under, as strict
    /// as all of them.
    pub async fn rule_over(&self, saved: &SavedPlan, rule: &ApprovalRule) -> Result<ApprovalRule> {
        let mut connection = self.journal().connection().await?;
        self.rule_over_on(&mut connection, saved, rule).await
    }

    async fn rule_over_on(
        &self,
        on: &mut Connection,
        saved: &SavedPlan,
        rule: &ApprovalRule,
    ) -> Result<ApprovalRule> {
        Ok(rule.and(&saved.approval).and(&self.standing_rule_on(on).await?.rule))
    }

    /// Why a plan, which comes to `all`, needs an approval by a rule, beside what other plans give back; `None` where it needs none.
    pub async fn why_approved(
        &self,
        plan: &Plan,
        all: &Tally,
        rule: &ApprovalRule,
        now: Timestamp,
    ) -> Result<Option<String>> {
        let mut connection = self.journal().connection().await?;
        self.why_approved_on(&mut connection, plan, all, rule, now).await
    }

    async fn why_approved_on(
        &self,
        on: &mut Connection,
        plan: &Plan,
        all: &Tally,
        rule: &ApprovalRule,
        now: Timestamp,
    ) -> Result<Option<String>> {
        let before = match rule.over {
            Some(_) => self.given_back_on(on, plan, now.minus(rule.within)).await?,
            None => BTreeMap::new(),
        };
        Ok(rule.why(all, &before))
    }

    /// What other plans give back that were begun since then, or under the same freeze, by currency, in minor units.
    async fn given_back_on(
        &self,
        on: &mut Connection,
        but: &Plan,
        since: Timestamp,
    ) -> Result<BTreeMap<Currency, i128>> {
        let journal = self.journal();
        let values = Values::new()
            .bind("plan_id", but.plan_id.as_str())
            .bind("since_us", since.micros())
            .bind("freeze_id", but.freeze_id.as_deref());
        let statement = journal.statement(&self.queries, "plans/begun_beside", &values)?;
        let mut sums = BTreeMap::new();
        for row in journal.fetch(on, &statement).await? {
            for (currency, sum) in PlanParts::of(self, &row)?.tally_on(on).await?.refunds() {
                *sums.entry(currency).or_default() += sum;
            }
        }
        Ok(sums)
    }

    /// The approval that a plan, which comes to `all`, needs and has, by this rule and those of [`Store::rule_over`]; `None` where it needs
    /// none, as one that is begun.
    ///
    /// # Errors
    /// Refused, with what to type, where it has none that counts.
    pub async fn must_be_approved(
        &self,
        saved: &SavedPlan,
        all: &Tally,
        rule: &ApprovalRule,
        now: Timestamp,
    ) -> Result<Option<Approval>> {
        let mut connection = self.journal().connection().await?;
        self.must_be_approved_on(&mut connection, saved, all, rule, now).await
    }

    async fn must_be_approved_on(
        &self,
        on: &mut Connection,
        saved: &SavedPlan,
        all: &Tally,
        rule: &ApprovalRule,
        now: Timestamp,
    ) -> Result<Option<Approval>> {
        // Nobody is asked twice.
        if saved.begun_at.is_some() {
            return Ok(None);
        }
        let plan = &saved.plan;
        let rule = self.rule_over_on(on, saved, rule).await?;
        let Some(why) = self.why_approved_on(on, plan, all, &rule, now).await? else { return Ok(None) };
        let approvals = self.approvals_on(on, &plan.digest).await?;
        if let Some(approval) = rule.given(&plan.digest, saved.maker.as_ref(), &approvals) {
            return Ok(Some(approval.clone()));
        }
        Err(not_approved(saved, rule.distinct, &why))
    }

    /// Says that a plan, which comes to `all`, is begun, so that its steps can be claimed; one that is begun already goes
    /// on, and no approval is asked for twice.
    ///
    /// # Errors
    /// Refused, where a newer plan has taken its place; where it needs an approval, by this rule, by the one that
    /// stands or by the one that it was made under, and has none that counts; and where its maker, its rule or its digest
    /// are not what they were.
    pub async fn begin_plan(
        &self,
        plan: &Plan,
        all: &Tally,
        rule: &ApprovalRule,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let (journal, plan_id) = (self.journal(), plan.plan_id.as_str());
        journal
            .transaction(async |tx| {
                // So that of two that are begun at once, each small enough, the second knows of the first.
                let hold = journal.statement(&self.queries, "plans/hold_begins", &Values::new())?;
                journal.execute(tx, &hold).await?;
                let saved = self.parts_on(tx, plan_id).await?.saved;
                self.must_be_as_told(tx, &saved).await?;
                if saved.plan.digest != plan.digest {
                    return Err(changed(plan_id, "its digest is another than it was just now"));
                }
                if saved.begun_at.is_some() {
                    return self.fence_plan(tx, plan_id).await;
                }
                let note = match self.must_be_approved_on(tx, &saved, all, rule, now).await? {
                    Some(approval) => format!("approved by {}", approval.by),
                    None => "needs no approval".to_owned(),
                };
                let values = Values::new().bind("plan_id", plan_id).bind("begun_at_us", now.micros());
                let statement = journal.statement(&self.queries, "plans/begin", &values)?;
                if journal.execute(tx, &statement).await? == 1 {
                    let entry = Entry::new(Event::Begun, actor, now).plan(plan_id).note(note);
                    self.append_on(tx, &entry).await?;
                }
                self.fence_plan(tx, plan_id).await
            })
            .await
    }
}

/// What the journal says of a word.
fn told(approval: &Approval) -> String {
    format!("{} by {}: {}", approval.digest, approval.by, approval.because)
}

/// A plan that needs an approval and has none that counts.
fn not_approved(saved: &SavedPlan, distinct: bool, why: &str) -> Error {
    let plan_id = &saved.plan.plan_id;
    let hint = format!("onefold approve {plan_id} --because TEXT");
    match saved.maker.as_ref().filter(|_| distinct) {
        _ if !distinct => Error::refused(format!("{plan_id} needs an approval: {why}")).hint(hint),
        Some(maker) => Error::refused(format!(
            "{plan_id} needs the approval of someone other than {maker}, who made it: {why}"
        ))
        .hint(format!("ask another person to read it, and to type: {hint}")),
        None => Error::refused(format!(
            "{plan_id} needs the approval of someone other than its maker ({why}), and who made it is not known"
        ))
        .hint("plan again: onefold plan"),
    }
}
