//! Approvals: each written once, never changed; and the moment at which a plan is begun, which asks for them.

use std::collections::BTreeMap;

use super::enforce::pieces;
use super::journal::{Entry, Event};
use super::plans::SavedPlan;
use super::rows::Reader;
use super::sql::{Statement, Values};
use super::{Connection, Store, Transaction};
use crate::core::approval::{Approval, ApprovalRule, Person};
use crate::core::money::Currency;
use crate::core::plan::refunds;
use crate::core::time::Timestamp;
use crate::error::{Error, Result};

impl Store {
    /// Who runs this process, as the operating system and the journal's database know them.
    pub async fn person(&self) -> Result<Person> {
        let os_user = if is_mapped() {
            String::new()
        } else {
            let name = whoami::username().map_err(|e| {
                Error::failure(format!("the operating system does not say who runs this: {e}"))
                    .hint("give this user id a name, as in /etc/passwd")
            })?;
            if is_made_up(&name) { String::new() } else { name }
        };
        let journal = self.journal();
        let dialect = journal.dialect;
        let text = self.queries.get("approvals/login")?;
        let statement = Statement::new(text, &pieces(dialect), &Values::new(), dialect)?;
        let mut connection = journal.connection().await?;
        let rows = journal.fetch(&mut connection, &statement).await?;
        let login =
            rows.first().map(|row| Reader::new(row, "approvals/login").needed("login")).transpose()?;
        Ok(Person { os_user, login: login.unwrap_or_default() })
    }

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

    /// Says that a plan is begun, so that its steps can be claimed; one that is begun already goes on, and no
    /// approval is asked for twice.
    ///
    /// # Errors
    /// Refused, where it needs an approval, by this rule, by the one that stands or by the one that it was made
    /// under, and has none that counts; and where its maker or its rule are not what the journal says.
    pub async fn begin_plan(
        &self,
        plan_id: &str,
        rule: &ApprovalRule,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let journal = self.journal();
        journal
            .transaction(async |tx| {
                let saved = self.plan_on(tx, plan_id).await?;
                if saved.begun_at.is_some() {
                    return Ok(());
                }
                // What an older version began is begun.
                let values = Values::new().bind("plan_id", plan_id);
                let first = journal.statement(&self.queries, "steps/first_of_plan", &values)?;
                let note = if !journal.fetch(tx, &first).await?.is_empty() {
                    "before this was noted".to_owned()
                } else {
                    self.must_be_as_told(tx, &saved).await?;
                    let rule = rule.and(&self.standing_rule_on(tx).await?.rule);
                    let approvals = self.approvals_on(tx, &saved.plan.digest).await?;
                    let before = match (&rule.and(&saved.approval).over, &saved.plan.freeze_id) {
                        (Some(_), Some(freeze)) => given_back(&self.plans_on(tx, freeze).await?, plan_id),
                        _ => BTreeMap::new(),
                    };
                    match must_be_approved(&saved, &rule, &approvals, &before)? {
                        Some(approval) => format!("approved by {}", approval.by),
                        None => "needs no approval".to_owned(),
                    }
                };
                let values = Values::new().bind("plan_id", plan_id).bind("begun_at_us", now.micros());
                let statement = journal.statement(&self.queries, "plans/begin", &values)?;
                if journal.execute(tx, &statement).await? == 1 {
                    let entry = Entry::new(Event::Begun, actor, now).plan(plan_id).note(note);
                    self.append_on(tx, &entry).await?;
                }
                Ok(())
            })
            .await
    }
}

/// What the journal says of a word.
fn told(approval: &Approval) -> String {
    format!("{} by {}: {}", approval.digest, approval.by, approval.because)
}

/// Whether a library was put before the system's own, or gave a name that is not that of the process's real user
/// id: then the environment says who somebody is.
fn is_made_up(name: &str) -> bool {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let known: Vec<(&str, &str)> = accounts
        .lines()
        .filter_map(|line| {
            let mut parts = line.split(':');
            Some((parts.next()?, parts.nth(1)?))
        })
        .collect();
    // One user id may have several names, and a name may be known elsewhere only.
    let of_name: Vec<_> = known.iter().filter(|(other, _)| *other == name).collect();
    let is_another = match of_name.is_empty() {
        true => known.iter().any(|(_, id)| *id == uid),
        false => of_name.iter().all(|(_, id)| *id != uid),
    };
    is_another || std::env::var_os("LD_PRELOAD").is_some()
}

/// Whether this process is in a namespace of user ids of its own, where it may have given itself any.
fn is_mapped() -> bool {
    let Ok(map) = std::fs::read_to_string("/proc/self/uid_map") else { return false };
    map.split_whitespace().ne(["0", "0", "4294967295"])
}

/// What plans under one freeze give back that have been begun, but for one of them.
pub fn given_back(plans: &[SavedPlan], but: &str) -> BTreeMap<Currency, i128> {
    let others = plans.iter().filter(|saved| saved.begun_at.is_some() && saved.plan.plan_id != but);
    refunds(others.flat_map(|saved| &saved.plan.intents).flat_map(|intent| &intent.steps))
}

/// The approval that a plan needs and has, beside what other plans give back; `None` where it needs none.
///
/// # Errors
/// Refused, with what to type, where it has none that counts.
pub fn must_be_approved<'a>(
    saved: &SavedPlan,
    rule: &ApprovalRule,
    approvals: &'a [Approval],
    before: &BTreeMap<Currency, i128>,
) -> Result<Option<&'a Approval>> {
    let plan = &saved.plan;
    let rule = rule.and(&saved.approval);
    let Some(why) = rule.why(plan, before) else { return Ok(None) };
    if let Some(approval) = rule.given(&plan.digest, saved.maker.as_ref(), approvals) {
        return Ok(Some(approval));
    }
    let plan_id = &plan.plan_id;
    let hint = format!("onefold approve {plan_id} --because TEXT");
    Err(match saved.maker.as_ref().filter(|_| rule.distinct) {
        _ if !rule.distinct => Error::refused(format!("{plan_id} needs an approval: {why}")).hint(hint),
        Some(maker) => Error::refused(format!(
            "{plan_id} needs the approval of someone other than {maker}, who made it: {why}"
        ))
        .hint(format!("ask another person to read it, and to type: {hint}")),
        None => Error::refused(format!(
            "{plan_id} needs the approval of someone other than its maker ({why}), and who made it is not known"
        ))
        .hint("plan again: onefold plan"),
    })
}
