//! Saved plans: written once, superseded or ended, never changed.

use std::collections::VecDeque;

use rayon::prelude::*;
use sha2::{Digest as _, Sha256};

use super::freezes::json;
use super::journal::{Entry, Event};
use super::packed::{pack, unpack};
use super::rows::Reader;
use super::sql::Values;
use super::{Connection, Store};
use crate::core::approval::{ApprovalRule, Person};
use crate::core::evidence::KeepOverride;
use crate::core::ids::*;
use crate::core::plan::{Plan, PlannedIntent};
use crate::core::plan_text::{IntentTexts, PlanDigest};
use crate::core::status::{Ledger, status_type};
use crate::core::tally::Tally;
use crate::core::time::Timestamp;
use crate::error::{Error, Result};

status_type!(PlanState {
    /// May be applied, or was begun.
    Open = "OPEN",
    /// A dry run: never applied.
    DryRun = "DRY_RUN",
    /// Every step of it has ended.
    Ended = "ENDED",
    /// A newer plan of the same freeze took its place.
    Superseded = "SUPERSEDED",
});

/// A plan with what became of it.
#[derive(Clone, Debug)]
pub struct SavedPlan {
    pub plan: Plan,
    pub state: PlanState,
    pub superseded_by: Option<String>,
    pub made_by: String,
    /// Who that is; not known of plans made by older versions.
    pub maker: Option<Person>,
    /// Under which rule it was made.
    pub approval: ApprovalRule,
    pub begun_at: Option<Timestamp>,
}

/// Who makes a plan, and under which rule.
#[derive(Clone, Copy, Debug)]
pub struct Maker<'a> {
    /// What he calls himself.
    pub actor: &'a str,
    pub person: &'a Person,
    pub approval: &'a ApprovalRule,
}

/// The head of a plan, without its intents.
#[derive(Clone, Debug)]
pub struct PlanHead {
    pub plan_id: String,
    pub state: PlanState,
    pub freeze_id: Option<String>,
    pub made_at: Timestamp,
    pub made_by: String,
}

/// What an operator said about kept orders when the plan was made.
#[derive(Clone, Debug, Default)]
pub struct KeepChanges {
    pub chosen: Vec<(TenantId, KeepOverride)>,
    pub withdrawn: Vec<(TenantId, OrderId)>,
}

impl Store {
    /// Saves a plan with the overrides that it rests on; older open plans of its freeze whose
    /// scopes overlap are superseded. Gives the rule that it was made under: the maker's and the one that stands.
    pub async fn save_plan(
        &self,
        plan: &Plan,
        keeps: &KeepChanges,
        maker: Maker<'_>,
    ) -> Result<ApprovalRule> {
        self.save_plan_as(plan, &IntentTexts::of(&plan.intents), keeps, maker).await
    }

    /// As [`Store::save_plan`], of a plan whose list leaves intents out: `texts` are those of all.
    pub async fn save_plan_as(
        &self,
        plan: &Plan,
        texts: &IntentTexts,
        keeps: &KeepChanges,
        maker: Maker<'_>,
    ) -> Result<ApprovalRule> {
        let Maker { actor, person, approval } = maker;
        let state = if plan.freeze_id.is_some() { PlanState::Open } else { PlanState::DryRun };
        let journal = self.journal();
        let parts: Vec<_> = texts.pieces().collect::<Vec<_>>().into_par_iter().map(pack).collect();
        journal
            .transaction(async |tx| {
                let approval = self.tighten_rule_on(tx, approval, (person, actor), plan.made_at).await?;
                let values = Values::new()
                    .bind("plan_id", plan.plan_id.as_str())
                    .bind("digest", plan.digest.as_str())
                    .bind("freeze_id", plan.freeze_id.as_deref())
                    .bind("state", state.as_str())
                    .bind("made_at_us", plan.made_at.micros())
                    .bind("made_by", actor)
                    .bind("os_user", person.os_user.as_str())
                    .bind("login", person.login.as_str())
                    .bind("approval", json(&approval)?)
                    .bind("body", json(&plan.without_intents())?);
                if state == PlanState::Open {
                    self.hold_retention_still(tx).await?;
                }
                journal.execute(tx, &journal.statement(&self.queries, "plans/insert", &values)?).await?;
                for (part, intents) in (0_i64..).zip(&parts) {
                    let values = Values::new()
                        .bind("plan_id", plan.plan_id.as_str())
                        .bind("part", part)
                        .bind("intents", &**intents);
                    let statement = journal.statement(&self.queries, "plans/insert_part", &values)?;
                    journal.execute(tx, &statement).await?;
                }
                let keep_entry = |event, tenant_id: &TenantId, order_id: &OrderId| {
                    Entry::new(event, actor, plan.made_at).plan(&plan.plan_id).row(
                        Ledger::Orders,
                        tenant_id,
                        order_id,
                    )
                };
                // What is chosen in a dry run is chosen for it alone.
                let none = KeepChanges::default();
                let keeps = if plan.freeze_id.is_some() { keeps } else { &none };
                for (tenant_id, keep) in &keeps.chosen {
                    let entry =
                        keep_entry(Event::KeepChosen, tenant_id, &keep.order_id).note(keep.because.as_str());
                    self.append_on(tx, &entry).await?;
                }
                for (tenant_id, order_id) in &keeps.withdrawn {
                    let entry = keep_entry(Event::KeepWithdrawn, tenant_id, order_id);
                    self.append_on(tx, &entry).await?;
                }
                if let Some(freeze_id) = &plan.freeze_id {
                    let values = Values::new()
                        .bind("freeze_id", freeze_id.as_str())
                        .bind("plan_id", plan.plan_id.as_str());
                    let statement = journal.statement(&self.queries, "plans/open_of_freeze", &values)?;
                    for row in journal.fetch(tx, &statement).await? {
                        // Its intents say nothing more of where it meets another.
                        let older = decode_head(&row)?;
                        if older.scope.overlaps(&plan.scope) {
                            let values = Values::new()
                                .bind("plan_id", older.plan_id.as_str())
                                .bind("superseded_by", plan.plan_id.as_str());
                            journal
                                .execute(tx, &journal.statement(&self.queries, "plans/supersede", &values)?)
                                .await?;
                            let entry = Entry::new(Event::Superseded, actor, plan.made_at)
                                .plan(&older.plan_id)
                                .note(format!("by {}", plan.plan_id));
                            self.append_on(tx, &entry).await?;
                        }
                    }
                }
                let mut entry = Entry::new(Event::Planned, actor, plan.made_at)
                    .plan(&plan.plan_id)
                    .note(planned_note(&plan.digest, person, &approval));
                entry.freeze_id = plan.freeze_id.clone();
                self.append_on(tx, &entry).await?;
                Ok(approval)
            })
            .await
    }

    /// Fails where what stands beside a plan, who made it, when and under which rule, and when it was begun, is not what
    /// the journal told then: the plan's digest does not cover that.
    pub(super) async fn must_be_as_told(&self, on: &mut Connection, saved: &SavedPlan) -> Result<()> {
        let plan_id = &saved.plan.plan_id;
        let journal = self.journal();
        let values = Values::new().bind("plan_id", plan_id.as_str());
        let statement = journal.statement(&self.queries, "plans/told", &values)?;
        let made = saved.maker.as_ref().map(|maker| {
            let note = planned_note(&saved.plan.digest, maker, &saved.approval);
            (Event::Planned.to_string(), saved.plan.made_at, saved.plan.freeze_id.clone(), Some(note))
        });
        let mut told = Vec::new();
        for row in journal.fetch(on, &statement).await? {
            let r = Reader::new(&row, "journal");
            told.push((r.needed("event")?, r.time("at_us")?, r.text("freeze_id")?, r.text("note")?));
        }
        let is_made = made.is_some() && told.first() == made.as_ref();
        if is_made && told.iter().skip(1).map(|(_, at, ..)| *at).eq(saved.begun_at) {
            return Ok(());
        }
        Err(Error::refused(format!(
            "who made {plan_id}, when, under which rule for approvals, and whether it is begun is not what the journal \
             says of it"
        ))
        .hint("somebody changed it in the database, or an older onefold made it; plan again: onefold plan"))
    }

    /// Fails where a newer plan has taken the place of this one, and holds it still until the transaction
    /// ends: whatever is committed with it was committed before.
    ///
    /// # Errors
    /// Refused, naming the newer plan.
    pub async fn fence_plan(&self, on: &mut Connection, plan_id: &str) -> Result<()> {
        let journal = self.journal();
        let values = Values::new().bind("plan_id", plan_id);
        match journal.execute(on, &journal.statement(&self.queries, "plans/fence", &values)?).await? {
            0 => Err(Error::refused(format!("a newer plan has taken the place of {plan_id}"))
                .hint("`onefold status` names it; what was done under the older one stays done")),
            _ => Ok(()),
        }
    }

    /// A saved plan by its id.
    ///
    /// # Errors
    /// Usage, where there is none; refused, where what is saved is no longer what was decided (its
    /// digest does not match).
    pub async fn plan_by_id(&self, plan_id: &str) -> Result<SavedPlan> {
        let mut connection = self.journal().connection().await?;
        self.parts_on(&mut connection, plan_id).await?.whole(&mut connection).await
    }

    /// A saved plan by its id, to be read part by part.
    ///
    /// # Errors
    /// As [`Store::plan_by_id`] has them; that it is what was decided turns out where its first reading ends.
    pub async fn parts_of_plan(&self, plan_id: &str) -> Result<PlanParts<'_>> {
        let mut connection = self.journal().connection().await?;
        self.parts_on(&mut connection, plan_id).await
    }

    /// As [`Store::parts_of_plan`], in a transaction.
    pub(super) async fn parts_on(&self, on: &mut Connection, plan_id: &str) -> Result<PlanParts<'_>> {
        let values = Values::new().bind("plan_id", plan_id);
        let statement = self.journal().statement(&self.queries, "plans/by_id", &values)?;
        match self.journal().fetch(on, &statement).await?.first() {
            Some(row) => PlanParts::of(self, row),
            None => Err(Error::usage(format!("there is no plan {plan_id}"))
                .hint("`onefold status` lists the newest ones")),
        }
    }

    /// Every plan of a freeze, whatever became of it, the newest first.
    pub async fn plans_of(&self, freeze_id: &str) -> Result<Vec<SavedPlan>> {
        let mut connection = self.journal().connection().await?;
        self.plans_on(&mut connection, freeze_id).await
    }

    /// As [`Store::plans_of`], in a transaction.
    pub(super) async fn plans_on(&self, on: &mut Connection, freeze_id: &str) -> Result<Vec<SavedPlan>> {
        let values = Values::new().bind("freeze_id", freeze_id);
        let statement = self.journal().statement(&self.queries, "plans/of_freeze", &values)?;
        let mut plans = Vec::new();
        for row in self.journal().fetch(on, &statement).await? {
            plans.push(PlanParts::of(self, &row)?.whole(on).await?);
        }
        Ok(plans)
    }

    /// The heads of the newest plans, the newest first.
    pub async fn newest_plans(&self) -> Result<Vec<PlanHead>> {
        let journal = self.journal();
        let statement = journal.statement(&self.queries, "plans/newest", &Values::new())?;
        let mut connection = journal.connection().await?;
        let rows = journal.fetch(&mut connection, &statement).await?;
        rows.iter()
            .map(|row| {
                let r = Reader::new(row, "onefold_plans");
                Ok(PlanHead {
                    plan_id: r.needed("plan_id")?,
                    state: r.parsed("state")?,
                    freeze_id: r.text("freeze_id")?,
                    made_at: r.time("made_at_us")?,
                    made_by: r.needed("made_by")?,
                })
            })
            .collect()
    }

    /// Marks an open plan as ended.
    pub async fn end_plan(&self, plan_id: &str, actor: &str, note: &str, now: Timestamp) -> Result<()> {
        let journal = self.journal();
        journal
            .transaction(async |tx| {
                let values = Values::new().bind("plan_id", plan_id);
                let ended =
                    journal.execute(tx, &journal.statement(&self.queries, "plans/end", &values)?).await?;
                if ended == 1 {
                    let entry = Entry::new(Event::Applied, actor, now).plan(plan_id).note(note);
                    self.append_on(tx, &entry).await?;
                }
                Ok(())
            })
            .await
    }
}

/// A saved plan that is read part by part, once or several times: all intents of a large one take much room.
pub struct PlanParts<'s> {
    store: &'s Store,
    /// Without its intents.
    pub saved: SavedPlan,
    /// Those that it was saved with before intents had rows of their own.
    older: Vec<PlannedIntent>,
    /// What was fetched and not given yet.
    waiting: VecDeque<Part>,
    /// The part to be fetched next.
    next: i64,
    /// What the first reading saw of each part. What it reads is proven by the plan's digest at its end, and what a later one
    /// reads by these.
    seals: Vec<[u8; 32]>,
    /// Of the first reading, while it lasts.
    digest: Option<PlanDigest>,
    /// How many parts were given in this reading.
    given: usize,
}

/// Some of a plan's intents, and their text as it was decided.
struct Part {
    text: String,
    seal: [u8; 32],
    intents: Vec<PlannedIntent>,
}

impl Part {
    /// # Errors
    /// Why it cannot be read.
    fn of(saved: String) -> std::result::Result<Self, String> {
        let text = unpack(saved)?;
        let intents = serde_json::from_str(&format!("[{text}]")).map_err(|e| e.to_string())?;
        Ok(Self { seal: Sha256::digest(&text).into(), text, intents })
    }
}

impl<'s> PlanParts<'s> {
    pub(super) fn of(store: &'s Store, row: &sqlx::any::AnyRow) -> Result<Self> {
        let mut plan = decode_head(row)?;
        let r = Reader::new(row, "onefold_plans");
        let person = r.text("os_user")?.zip(r.text("login")?);
        let approval = r.text("approval")?.map(|text| serde_json::from_str(&text)).transpose();
        let older = std::mem::take(&mut plan.intents);
        let mut digest = PlanDigest::new(plan.as_of);
        older.iter().for_each(|intent| digest.intent(intent));
        let saved = SavedPlan {
            plan,
            state: r.parsed("state")?,
            superseded_by: r.text("superseded_by")?,
            made_by: r.needed("made_by")?,
            maker: person.map(|(os_user, login)| Person { os_user, login }),
            approval: approval.map_err(|e| r.bad("approval", e))?.unwrap_or_default(),
            begun_at: r.time_or_null("begun_at_us")?,
        };
        let (waiting, seals) = (VecDeque::new(), Vec::new());
        Ok(Self { store, saved, older, waiting, next: 0, seals, digest: Some(digest), given: 0 })
    }

    /// The intents of the next part, in the plan's order; `None` behind the last one. After that it begins anew.
    ///
    /// # Errors
    /// Refused, where what is saved is no longer what was decided. Of the first reading this is known only when it has come
    /// to its end: until then nothing may be done by what it gives.
    pub async fn next(&mut self) -> Result<Option<Vec<PlannedIntent>>> {
        let mut connection = self.store.journal().connection().await?;
        self.next_on(&mut connection).await
    }

    /// As [`PlanParts::next`], in a transaction.
    pub(super) async fn next_on(&mut self, on: &mut Connection) -> Result<Option<Vec<PlannedIntent>>> {
        if self.next == 0 && !self.older.is_empty() {
            self.next = 1;
            return Ok(Some(self.older.clone()));
        }
        if self.waiting.is_empty() {
            self.fetch(on).await?;
        }
        let Some(part) = self.waiting.pop_front() else { return self.end().map(|()| None) };
        match &mut self.digest {
            Some(digest) => {
                digest.piece(&part.text);
                self.seals.push(part.seal);
            }
            None if self.seals.get(self.given) == Some(&part.seal) => {}
            None => return Err(changed(&self.saved.plan.plan_id, "a part of it has changed just now")),
        }
        self.given += 1;
        Ok(Some(part.intents))
    }

    async fn fetch(&mut self, on: &mut Connection) -> Result<()> {
        let journal = self.store.journal();
        let values = Values::new().bind("plan_id", self.saved.plan.plan_id.as_str()).bind("next", self.next);
        let statement = journal.statement(&self.store.queries, "plans/parts", &values)?;
        let mut saved = Vec::new();
        for part in journal.fetch(on, &statement).await? {
            let r = Reader::new(&part, "onefold_plan_parts");
            self.next = r.int("part")? + 1;
            saved.push(r.needed("intents")?);
        }
        let parts: std::result::Result<VecDeque<_>, _> = saved.into_par_iter().map(Part::of).collect();
        self.waiting = parts.map_err(|why| {
            changed(&self.saved.plan.plan_id, &format!("its intents cannot be read: {why}"))
        })?;
        Ok(())
    }

    /// Ends a reading.
    fn end(&mut self) -> Result<()> {
        let Plan { plan_id, digest, live_orders, policy, scope, sums, .. } = &self.saved.plan;
        let is_whole = match self.digest.take() {
            Some(read) => read.end(*live_orders, policy, scope, sums) == *digest,
            None => self.given == self.seals.len(),
        };
        if !is_whole {
            return Err(changed(plan_id, "its digest does not match"));
        }
        (self.next, self.given) = (0, 0);
        Ok(())
    }

    /// What it comes to.
    pub(super) async fn tally_on(&mut self, on: &mut Connection) -> Result<Tally> {
        let mut tally = Tally::default();
        while let Some(intents) = self.next_on(on).await? {
            intents.iter().for_each(|intent| tally.add(intent));
        }
        Ok(tally)
    }

    /// With all its intents.
    async fn whole(mut self, on: &mut Connection) -> Result<SavedPlan> {
        let mut all = Vec::new();
        while let Some(intents) = self.next_on(on).await? {
            all.extend(intents);
        }
        self.saved.plan.intents = all;
        Ok(self.saved)
    }
}

/// What the journal says of a plan when it is saved.
fn planned_note(digest: &str, maker: &Person, rule: &ApprovalRule) -> String {
    format!("{digest} by {maker}: {rule}")
}

/// A plan as its own row has it: without its intents, unless it was saved before these had rows of their own.
fn decode_head(row: &sqlx::any::AnyRow) -> Result<Plan> {
    let r = Reader::new(row, "onefold_plans");
    let plan: Plan = serde_json::from_str(&r.needed("body")?).map_err(|e| r.bad("body", e))?;
    // The digest leaves these out: a plan is the same under another name.
    let named = (&plan.plan_id, &plan.freeze_id, plan.made_at);
    let plan_id: String = r.needed("plan_id")?;
    if named != (&plan_id, &r.text("freeze_id")?, r.time("made_at_us")?) {
        return Err(changed(&plan_id, "it stands under another name, freeze or time than its own"));
    }
    Ok(plan)
}

/// What is saved of a plan is no longer what was decided.
pub(super) fn changed(plan_id: &str, what: &str) -> Error {
    Error::refused(format!("{plan_id} is not what was decided: {what}"))
        .hint("somebody changed it in the database; plan again")
}
