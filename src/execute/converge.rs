//! Settles what is in doubt by asking the provider: our own requests whose answer is missing, and
//! the charges that a decision waits for (contract, section 3).

use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;

use super::money::gone;
use super::moves::{Place, Ran, must_be_planned};
use super::way::{Way, way, words};
use super::{Executor, IntentEnd};
use crate::core::freeze::FreezeMode;
use crate::core::ids::*;
use crate::core::ledger::{Ledgers, Payment};
use crate::core::plan::{Finding, Outcome, Plan, PlannedIntent};
use crate::core::status::{Ledger, PaymentStatus};
use crate::error::{Exit, Result};
use crate::providers::{Answer, Ask, Charge, ChargeState, Found, Request};
use crate::store::journal::{Entry, Event};
use crate::store::moves::{Move, Moved};
use crate::store::plans::{PlanState, SavedPlan};
use crate::store::steps::{Claim, StepRecord, StepState};

/// What was learned about one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    pub ledger: Ledger,
    pub tenant_id: TenantId,
    pub id: RowId,
    pub what: String,
    /// Whether it is settled now; else it stays in doubt.
    pub settled: bool,
    /// Whether something about it was refused: what is recorded of it, or how it is configured, is not as it
    /// must be.
    pub refused: bool,
}

/// What was learned of one row, in words, and whether it is settled: a row that is not as it must be is told
/// of, and stops nobody else.
fn of_one_row(asked: Result<(String, bool)>) -> Result<(String, bool, bool)> {
    match asked {
        Ok((what, settled)) => Ok((what, settled, false)),
        Err(e) if matches!(e.exit, Exit::Refused | Exit::Usage) => {
            let hint = e.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            Ok((e.message + &hint, false, true))
        }
        Err(e) => Err(e),
    }
}

impl Executor<'_> {
    /// Asks about requests of ours that were begun and whose end is not known. One that the provider
    /// never got goes out again under its own key, where its plan does not go on and the actor holds
    /// its row still.
    ///
    /// # Errors
    /// Failure, where a database does not answer.
    pub async fn converge_steps(&self, steps: Vec<StepRecord>) -> Result<Vec<Learned>> {
        let mut plans: HashMap<String, SavedPlan> = HashMap::new();
        let mut learned = Vec::new();
        for record in steps {
            let (tenant_id, id, ledger) =
                (record.tenant_id.clone(), record.step.id.clone(), record.step.ledger);
            let is_sent = record.sent;
            if is_sent && !plans.contains_key(&record.plan_id) {
                plans.insert(record.plan_id.clone(), self.store.plan_by_id(&record.plan_id).await?);
            }
            let saved = plans.get(&record.plan_id);
            let claim = if is_sent {
                self.claim_begun(self.as_ours(record)).await?
            } else {
                self.heal(record).await?
            };
            let (what, settled, refused) = of_one_row(match (claim, saved) {
                (Claim::Sent(record), Some(saved)) => self.settle_request(saved, record).await,
                (Claim::Busy(record), _) => {
                    Ok((format!("{} is at it", record.owner.as_deref().unwrap_or("another process")), false))
                }
                (Claim::Done(record), _) if !is_sent => {
                    Ok((format!("{}: a run that was broken off had moved it", record.step.to), true))
                }
                (Claim::Ours(record), _) if !is_sent => {
                    Ok((format!("{}: a run was broken off before it moved it", record.step.from), true))
                }
                _ => continue,
            })?;
            learned.push(Learned { ledger, tenant_id, id, what, settled, refused });
        }
        Ok(learned)
    }

    /// Learns what became of one request, which this worker has claimed; in words, and whether it ended.
    async fn settle_request(&self, saved: &SavedPlan, record: StepRecord) -> Result<(String, bool)> {
        let watch: &super::Tell<'_> = &|_| std::ops::ControlFlow::Continue(());
        must_be_planned(&saved.plan.intents, &record)?;
        let Some(request) = self.request(&record).await? else {
            let why = gone(&record);
            self.release(record, &why, Event::Conflict).await?;
            return Ok((why, false));
        };
        let ask = request.ask;
        if let Some(why) = self.other_way(&record, &request)? {
            self.put_down(record, &why).await?;
            return Ok((why, false));
        }
        let ran = match self.provider(&request.charge)?.ask(&request, (self.clock)()).await? {
            Found::Request(answer) => self.conclude(record, answer, watch).await?,
            Found::NoAnswer(why) => self.unanswered(record, &why, watch).await?,
            Found::Nothing { listed } => match self.moot(&record, &request, StepState::Withdrawn).await? {
                Some(learned) => return Ok(learned),
                None => match self.may_repeat(saved, &record, &request, listed).await? {
                    None => self.send(record, true, watch).await?,
                    Some(why) => {
                        self.release(record, "the provider knows no such request", Event::Asked).await?;
                        return Ok((format!("the provider knows no such {ask}: {why}"), false));
                    }
                },
            },
        };
        Ok(in_words(ask, ran))
    }

    /// Ends a request whose effect can never come any more, going by what the provider says of the
    /// charge, and lets the row follow the charge; in words, and whether the row is settled. `None`
    /// where the request may still have its effect.
    pub(super) async fn moot(
        &self,
        record: &StepRecord,
        request: &Request,
        state: StepState,
    ) -> Result<Option<(String, bool)>> {
        let says = self.provider(&request.charge)?.charge_state(&request.charge, (self.clock)()).await?;
        let is_moot = match (request.ask, &says) {
            (Ask::Void, ChargeState::Captured { .. } | ChargeState::Voided | ChargeState::Failed) => true,
            (Ask::Refund { .. }, ChargeState::Captured { amount_minor, refunded_minor, .. }) => {
                amount_minor == refunded_minor
            }
            _ => false,
        };
        if !is_moot {
            return Ok(None);
        }
        // It may be this very request that did it, between the two questions.
        let asked_again = self.provider(&request.charge)?.ask(request, (self.clock)()).await?;
        if matches!(asked_again, Found::Request(Answer::Done(_) | Answer::Accepted(_))) {
            return Ok(None);
        }
        let note = format!("the {} can no longer be made: the provider says {}", request.ask, words(&says));
        let closed =
            StepRecord { state, note: Some(note.clone()), updated_at: (self.clock)(), ..record.clone() };
        self.record(&closed, Event::Conflict).await?;
        let payment = self.store.read_row::<Payment>(&record.tenant_id, &record.step.id).await?;
        let (what, settled) = match payment {
            Some(payment) => self.ask_charge(&payment, &record.intent_id).await?,
            None => (gone(record), false),
        };
        Ok(Some((format!("{note}; {what}"), settled)))
    }

    /// Why a request that the provider never got may not go out again here, under its own key; `None`
    /// where it may: the provider cannot have forgotten the key, no plan goes on with it, a freeze of the
    /// actor holds its row, and its intent's rows are as planned.
    async fn may_repeat(
        &self,
        saved: &SavedPlan,
        record: &StepRecord,
        request: &Request,
        listed: bool,
    ) -> Result<Option<String>> {
        if let Some(why) = self.forgotten(record, request, listed)? {
            return Ok(Some(why));
        }
        if self.goes_on(saved).await? {
            return Ok(Some(format!("onefold apply {} sends it again under the same key", record.plan_id)));
        }
        if let Some(why) = self.not_held(&saved.plan, record).await? {
            return Ok(Some(format!("it is sent again, under the same key, once {why}")));
        }
        let differences = self.is_as_planned(&saved.plan, record).await?;
        if differences.is_empty() {
            return Ok(None);
        }
        let key = record.step.provider_key.as_deref().unwrap_or_default();
        Ok(Some(format!(
            "it is not sent again, as the rows are not as {} saw them ({}). Where it is still meant, make it at \
             the provider by hand, under key {key} if it takes one: converge then closes it",
            record.plan_id,
            differences.join("; ")
        )))
    }

    /// Whether a plan can still be applied: nothing took its place, and its freeze can be held.
    async fn goes_on(&self, saved: &SavedPlan) -> Result<bool> {
        Ok(match &saved.plan.freeze_id {
            Some(freeze_id) if saved.state == PlanState::Open => {
                self.store.freeze_by_id(freeze_id).await?.is_open()
            }
            _ => false,
        })
    }

    /// What is missing for the actor to hold the row of a request still; `None` where nothing is.
    async fn not_held(&self, plan: &Plan, record: &StepRecord) -> Result<Option<String>> {
        let Some(intent) = plan.intents.iter().find(|i| i.intent_id == record.intent_id) else {
            return Ok(Some(format!("{} has the intent {}", plan.plan_id, record.intent_id)));
        };
        let row = PlannedIntent { steps: vec![record.step.clone()], ..intent.clone() };
        let ledgers = self.store.read_intents([&row]).await?;
        let now = (self.clock)();
        let mut freezes = self.store.open_freezes().await?;
        freezes.retain(|f| f.is_live(now) && f.outside(&[&row], &ledgers).is_empty());
        let Some(freeze) = freezes.first() else {
            let mut scope = format!("--tenant {}", intent.tenant_id);
            intent.show_id.iter().for_each(|show| scope += &format!(" --show {show}"));
            intent.user_id.iter().for_each(|user| scope += &format!(" --user {user}"));
            return Ok(Some(format!(
                "you hold a freeze that covers it: onefold freeze {scope} --enforce --reason TEXT"
            )));
        };
        let freeze_id = &freeze.freeze_id;
        Ok(match freeze.mode {
            _ if freeze.owner != self.worker.actor => {
                Some(format!("{} asks, who holds it by {freeze_id}, or that freeze is yours", freeze.owner))
            }
            FreezeMode::Recorded => Some(format!(
                "{freeze_id} is more than recorded: onefold freeze --renew {freeze_id} --enforce, or --advisory"
            )),
            FreezeMode::Advisory => None,
            FreezeMode::Enforced => self.store.must_be_guarded().await.err().map(|e| {
                format!("{freeze_id} is enforced again ({}): onefold freeze --renew {freeze_id} --enforce --install-now", e.message)
            }),
        })
    }

    /// Lets go of a step whose request stays in doubt, so that apply may claim it.
    pub(super) async fn release(&self, record: StepRecord, why: &str, event: Event) -> Result<()> {
        let state = StepState::Unknown;
        let note = Some(why.to_owned());
        let record = StepRecord { state, note, updated_at: (self.clock)(), ..record };
        self.record(&record, event).await
    }

    /// Asks about the charges that intents in doubt wait for, and about every other payment whose end is
    /// open, whatever was decided; moves their rows to what the provider says, and notes in the journal
    /// what was asked. `ours` are payments with an open request of
    /// ours: these are asked about by their requests.
    pub async fn converge_charges(
        &self,
        intents: &[PlannedIntent],
        ledgers: &Ledgers,
        ours: &BTreeSet<(TenantId, RowId)>,
    ) -> Result<Vec<Learned>> {
        let mut learned = Vec::new();
        for intent in intents {
            use Finding::{OrderInMotion, PaymentInDoubt, RefundInDoubt};
            let in_doubt =
                [OrderInMotion, PaymentInDoubt, RefundInDoubt].map(|f| intent.findings.contains(&f));
            let in_doubt = intent.outcome == Outcome::Unsettled || in_doubt.contains(&true);
            let of_intent = |tenant_id: &TenantId, order_id: Option<&OrderId>| {
                *tenant_id == intent.tenant_id && order_id.is_some_and(|id| intent.orders.contains(id))
            };
            let is_orphan = |p: &Payment| {
                p.tenant_id == intent.tenant_id
                    && intent.orphans.contains(&(Ledger::Payments, RowId::from(&p.payment_id)))
            };
            let payments: Vec<_> = ledgers
                .payments
                .iter()
                .filter(|p| of_intent(&p.tenant_id, p.order_id.as_ref()) || is_orphan(p))
                .collect();
            let refunds_in_doubt = intent.findings.contains(&Finding::RefundInDoubt);
            let mut unsettled_orders: BTreeSet<&OrderId> = BTreeSet::new();
            let in_motion: Vec<_> = ledgers
                .orders
                .iter()
                .filter(|o| in_doubt && of_intent(&o.tenant_id, Some(&o.order_id)) && o.status.is_in_motion())
                .collect();
            for payment in payments {
                let moving = in_motion.iter().any(|o| Some(&o.order_id) == payment.order_id.as_ref());
                if !is_asked_about(payment.status, in_doubt, moving || refunds_in_doubt) {
                    continue;
                }
                let row = (payment.tenant_id.clone(), RowId::from(&payment.payment_id));
                let (what, settled, refused) = of_one_row(if ours.contains(&row) {
                    Ok(("our own request about it is still open".to_owned(), false))
                } else {
                    self.ask_charge(payment, &intent.intent_id).await
                })?;
                if !settled {
                    unsettled_orders.extend(payment.order_id.as_ref());
                }
                learned.push(Learned {
                    ledger: Ledger::Payments,
                    tenant_id: row.0,
                    id: row.1,
                    what,
                    settled,
                    refused,
                });
            }
            for order in in_motion.into_iter().filter(|o| !unsettled_orders.contains(&o.order_id)) {
                let mut entry = Entry::new(Event::Asked, &self.worker.actor, (self.clock)())
                    .row(Ledger::Orders, &order.tenant_id, &order.order_id)
                    .note(format!("all charges of the order asked about while it is {}", order.status));
                entry.intent_id = Some(intent.intent_id.clone());
                entry.version = Some(order.version.clone());
                self.store.append(&entry).await?;
                learned.push(Learned {
                    ledger: Ledger::Orders,
                    tenant_id: order.tenant_id.clone(),
                    id: (&order.order_id).into(),
                    what: format!("{}: all its charges are known, it can be finished", order.status),
                    settled: true,
                    refused: false,
                });
            }
        }
        Ok(learned)
    }

    /// Asks about one charge and moves its row to what the provider says; in words, and whether
    /// ledger and provider agree now.
    pub(super) async fn ask_charge(&self, payment: &Payment, intent_id: &str) -> Result<(String, bool)> {
        let nothing_sent = match self.give_up(payment).await? {
            GivenUp::Yes => true,
            GivenUp::NotOurs => false,
            GivenUp::Left(saved, record) => {
                return Box::pin(self.settle_request(&saved, *record)).await;
            }
            GivenUp::Needed(plan_id) => {
                return Ok((format!("onefold apply {plan_id} goes on with it"), false));
            }
        };
        let charge = Charge::from(payment);
        let (state, asked_at) = self.provider(&charge)?.charge_state_at(&charge, (self.clock)()).await?;
        let way = match way(payment, &state, nothing_sent) {
            Way::Moves(way) => way,
            Way::Stays(why) => return Ok((why, false)),
        };
        let mut version = payment.version.clone();
        let mut from = payment.status;
        for leg in &way {
            let id = RowId::from(&payment.payment_id);
            let asked = Move {
                ledger: Ledger::Payments,
                tenant_id: &payment.tenant_id,
                id: &id,
                from: from.as_str(),
                to: leg.to.as_str(),
                version: &version,
                refund_minor: leg.refund_minor,
                amount: Some((leg.refund_minor, payment.currency)),
                captured_at: leg.captured_at,
                step_key: "",
                actor: &self.worker.actor,
                now: (self.clock)(),
            };
            // A refund that another asked for and the provider refused is refused for us, too.
            let refused = matches!(state, ChargeState::Captured { refund_refused: true, .. });
            let event =
                if refused && from == PaymentStatus::Refunding { Event::Refused } else { Event::Settled };
            let entry = self.entry(event, payment, intent_id).moved(from.as_str(), leg.to.as_str());
            let Moved::Now(row) = self.move_and_tell(payment.shard, &asked, entry).await? else {
                return Ok(("it moved while the provider was asked; ask again".to_owned(), false));
            };
            (version, from) = (row.version, leg.to);
        }
        let mut asked =
            self.entry(Event::Asked, payment, intent_id).note(format!("the provider says {}", words(&state)));
        asked.version = Some(version);
        // What happened after it was asked it cannot have known.
        asked.at = Some(asked_at);
        self.store.append(&asked).await?;
        Ok(match way.last() {
            Some(leg) => {
                (format!("{} → {}: the provider says {}", payment.status, leg.to, words(&state)), true)
            }
            None => (format!("{}: the provider says the same", payment.status), true),
        })
    }

    /// Gives up a refund or void that we began with its first leg and of which nothing was sent, where
    /// no plan goes on with it: its key is closed, so that nobody sends it any more.
    async fn give_up(&self, payment: &Payment) -> Result<GivenUp> {
        let id = RowId::from(&payment.payment_id);
        let steps = self.store.steps_of_payments(&payment.tenant_id, &[&id]).await?;
        let Some(first) = steps.iter().rev().find(|r| {
            r.state == StepState::Done
                && r.step.to == payment.status.as_str()
                && r.version_after.as_ref() == Some(&payment.version)
        }) else {
            return Ok(GivenUp::NotOurs);
        };
        let saved = self.store.plan_by_id(&first.plan_id).await?;
        let plan = &saved.plan;
        let Some(second) = second_leg(plan, first) else { return Ok(GivenUp::NotOurs) };
        if steps.iter().any(|r| r.step_key == second.step().step_key && r.sent) {
            return Ok(GivenUp::NotOurs);
        }
        if self.goes_on(&saved).await? && self.is_as_planned(plan, first).await?.is_empty() {
            return Ok(GivenUp::Needed(plan.plan_id.clone()));
        }
        let way = self.provider(&payment.into())?.kind().to_owned();
        let sent = StepRecord {
            sent_through: Some(way),
            ..self.wanted(second, Some(payment.version.clone()), true)
        };
        if let Some(refunded_before_minor) = self.left_with_first_leg(&sent).await? {
            return Ok(match self.claim_begun(StepRecord { refunded_before_minor, ..sent }).await? {
                Claim::Ours(record) | Claim::Sent(record) => GivenUp::Left(Box::new(saved), Box::new(record)),
                _ => GivenUp::NotOurs,
            });
        }
        // Whatever is configured now: it may have left with its first leg through the outbox.
        if let Some(key) = &second.step().provider_key
            && self.store.outbox_answer(payment.shard, key).await?.is_some()
        {
            return Ok(GivenUp::NotOurs);
        }
        let closed = self
            .store
            .journal()
            .transaction(async |tx| {
                let wanted = self.wanted(second, Some(payment.version.clone()), false);
                match self.store.claim(tx, &wanted).await? {
                    Claim::Withdrawn(_) => Ok(true),
                    Claim::Ours(record) => {
                        let closed = StepRecord { state: StepState::Withdrawn, ..record };
                        self.record_on(tx, &closed, Event::Withdrawn).await?;
                        Ok(true)
                    }
                    _ => Ok(false),
                }
            })
            .await?;
        Ok(if closed { GivenUp::Yes } else { GivenUp::NotOurs })
    }

    fn entry(&self, event: Event, payment: &Payment, intent_id: &str) -> Entry {
        let mut entry = Entry::new(event, &self.worker.actor, (self.clock)()).row(
            Ledger::Payments,
            &payment.tenant_id,
            &payment.payment_id,
        );
        entry.intent_id = Some(intent_id.to_owned());
        entry.amount_minor = Some(payment.amount_minor);
        entry.currency = Some(payment.currency.code().to_owned());
        entry
    }
}

/// How a request has ended, in words, and whether it is settled.
pub(super) fn in_words(ask: impl Display, ran: Ran) -> (String, bool) {
    match ran {
        Ran::Through(_) => (format!("the {ask} is done"), true),
        Ran::Stopped(_, IntentEnd::Refused(why)) => (why, true),
        Ran::Stopped(_, IntentEnd::Accepted(_)) => {
            (format!("the provider has not finished the {ask}"), false)
        }
        Ran::Stopped(_, IntentEnd::Conflict(why)) => (why.join("; "), false),
        Ran::Stopped(_, IntentEnd::Unknown(why)) => (why, false),
        Ran::Stopped(..) => (format!("what became of the {ask} is still not known"), false),
    }
}

/// What became of a refund or void of ours that was begun.
enum GivenUp {
    /// Nothing of it was sent, and nothing will be.
    Yes,
    /// There is none, or it may have been sent.
    NotOurs,
    /// It left with its first leg: claimed now as the request that it is.
    Left(Box<SavedPlan>, Box<StepRecord>),
    /// This plan is open and goes on with it.
    Needed(String),
}

/// Where a plan has the second leg of a refund or void, by the record of the first.
fn second_leg<'a>(plan: &'a Plan, first: &StepRecord) -> Option<Place<'a>> {
    let intent = plan.intents.iter().find(|i| i.intent_id == first.intent_id)?;
    let position = intent.steps.iter().position(|s| s.step_key == first.step_key)? + 1;
    let second = intent.steps.get(position)?;
    let follows =
        second.ledger == first.step.ledger && second.id == first.step.id && second.from == first.step.to;
    follows.then_some(Place { plan, intent, position })
}

/// Which charges of an intent are asked about: those whose end is open (one that is INITIATED may be a
/// checkout under way, unless its intent is in doubt), and where a refund or an order's move is in
/// doubt, every one that may hold money.
fn is_asked_about(status: PaymentStatus, in_doubt: bool, all: bool) -> bool {
    use PaymentStatus::*;
    match status {
        Unknown | Voiding | Refunding => true,
        Initiated => in_doubt,
        Authorized | Captured | Disputed => all,
        Failed | Voided | Refunded | ChargedBack => false,
    }
}
