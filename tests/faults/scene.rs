//! A night with duplicate orders, frozen and planned, and what a test does with it.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onefold::core::freeze::{Effect, Freeze, FreezeMode};
use onefold::core::ids::*;
use onefold::core::ledger::Ledgers;
use onefold::core::plan::{Plan, make};
use onefold::core::policy::Policy;
use onefold::core::scope::Scope;
use onefold::core::status::Ledger;
use onefold::core::tally::Tally;
use onefold::core::time::{Span, Timestamp};
use onefold::error::Result;
use onefold::execute::apply::Applied;
use onefold::execute::command::Commands;
use onefold::execute::converge::Learned;
use onefold::execute::pace::Pace;
use onefold::execute::{Executor, IntentEnd, Moment};
use onefold::providers::sandbox::Sandbox;
use onefold::providers::{ANY, Provider, Providers};
use onefold::store::Store;
use onefold::store::freezes::FreezeRequest;
use onefold::store::plans::KeepChanges;
use onefold::store::sandbox::{Behaviour, ChargeStatus, SandboxCharge};
use onefold::store::steps::Worker;

use crate::common::book::Book;
use crate::common::databases::{Db, sorted};
use crate::common::{NO_APPROVAL, maker};

thread_local! {
    static AHEAD: Cell<Span> = const { Cell::new(Span::from_secs(0)) };
}

/// The time, as far ahead as the test has turned it.
pub fn clock() -> Timestamp {
    Timestamp::from_datetime(&chrono::Utc::now()).plus(AHEAD.get())
}

/// Turns the clock of this thread.
pub fn turn_clock(ahead: Span) {
    AHEAD.set(ahead);
}

/// One user's purchase as three orders, of which one is kept, with a second capture on it; and
/// another's as two. Refunds, a void, releases, quarantines and cancellations are to be made.
pub fn night() -> Ledgers {
    let mut book = Book::new();
    book.bought("O-A", 0);
    book.payment("P-A2", "O-A", 40, "CAPTURED");
    book.bought("O-B", 20);
    book.payment("P-B2", "O-B", 25, "AUTHORIZED");
    book.message("M-B", "O-B", "ticket.issue", "QUEUED");
    book.reserved("O-C", 30);
    book.message("M-C", "O-C", "order.timeout", "IN_FLIGHT");
    book.bought("O-D", 0);
    book.bought("O-E", 10);
    let mut ledgers = book.ledgers;
    let of_v = |id: &str| id.ends_with("-D") || id.ends_with("-E");
    ledgers.orders.iter_mut().filter(|r| of_v(r.order_id.as_str())).for_each(|r| r.user_id = "v".into());
    ledgers.payments.iter_mut().filter(|r| of_v(r.payment_id.as_str())).for_each(|r| r.user_id = "v".into());
    ledgers.inventory.iter_mut().filter(|r| of_v(r.hold_id.as_str())).for_each(|r| r.user_id = "v".into());
    ledgers
}

/// Gives every row to this tenant.
pub fn of_tenant(mut ledgers: Ledgers, tenant: &str) -> Ledgers {
    ledgers.orders.iter_mut().for_each(|r| r.tenant_id = tenant.into());
    ledgers.payments.iter_mut().for_each(|r| r.tenant_id = tenant.into());
    ledgers.inventory.iter_mut().for_each(|r| r.tenant_id = tenant.into());
    ledgers.messages.iter_mut().for_each(|r| r.tenant_id = tenant.into());
    ledgers
}

/// A tenant's night. Several stand side by side in one store, so that a test need not make a new
/// database for each of its rounds.
pub struct Night<'s> {
    pub store: &'s Store,
    pub tenant: String,
    pub freeze: Freeze,
    pub plan: Plan,
}

impl<'s> Night<'s> {
    /// Loads, freezes and plans a tenant's night.
    pub async fn begin(store: &'s Store, tenant: &str) -> Self {
        store.import(&of_tenant(night(), tenant), false, |_, _| ()).await.unwrap();
        Self::of_rows_there(store, tenant).await
    }

    /// As [`Night::begin`], where the rows are there already.
    pub async fn of_rows_there(store: &'s Store, tenant: &str) -> Self {
        let freeze = Self::freeze(store, tenant, "F").await;
        let plan = plan_under(store, &freeze, &format!("PL-{tenant}")).await;
        Self { store, tenant: tenant.to_owned(), freeze, plan }
    }

    /// Freezes the tenant anew; its freeze before is not live any more.
    pub async fn freeze_again(&mut self, name: &str) {
        self.freeze = Self::freeze(self.store, &self.tenant, name).await;
    }

    async fn freeze(store: &Store, tenant: &str, name: &str) -> Freeze {
        let request = FreezeRequest {
            freeze_id: format!("{name}-{tenant}"),
            owner: "op".to_owned(),
            reason: "a night".to_owned(),
            scope: Scope { tenants: [TenantId::from(tenant)].into(), ..Scope::default() },
            effects: vec![Effect::AutoPayment],
            topics: Default::default(),
            mode: FreezeMode::Advisory,
            lease: Span::from_mins(30),
        };
        store.freeze(&request, clock()).await.unwrap()
    }

    pub async fn plan_again(&mut self, name: &str) {
        self.plan = plan_under(self.store, &self.freeze, &format!("{name}-{}", self.tenant)).await;
    }

    /// The sandbox treats requests about a payment so.
    pub async fn behave(&self, payment: &str, behaviour: Behaviour) {
        assert_eq!(self.tell(payment, behaviour).await, 1);
    }

    /// The sandbox knows every charge; it must, where it is asked about one that nothing was sent for.
    pub async fn tell_all(&self) {
        for payment in ["P-O-A", "P-A2", "P-O-B", "P-B2", "P-O-D", "P-O-E"] {
            self.tell(payment, Behaviour::Ok).await;
        }
    }

    async fn tell(&self, payment: &str, behaviour: Behaviour) -> u64 {
        let charge = SandboxCharge {
            tenant_id: self.tenant.as_str().into(),
            provider: "pay".to_owned(),
            charge: payment.to_owned(),
            status: if payment == "P-B2" { ChargeStatus::Authorized } else { ChargeStatus::Captured },
            amount_minor: 1000,
            refunded_minor: 0,
            currency: "CNY".parse().unwrap(),
            captured_at: None,
            behaviour,
        };
        self.store.sandbox_learn(&[charge]).await.unwrap()
    }

    pub fn worker(&self) -> Worker {
        worker("op", self.freeze.token)
    }

    /// Applies the plan, telling of each moment.
    pub async fn apply(&self, watch: impl FnMut(Moment<'_>) -> ControlFlow<()>) -> Result<Applied> {
        self.apply_through(&providers(Sandbox::well_behaved(self.store)), watch).await
    }

    /// As [`Night::apply`], with providers of a test's own.
    pub async fn apply_through(
        &self,
        providers: &Providers<'_>,
        mut watch: impl FnMut(Moment<'_>) -> ControlFlow<()>,
    ) -> Result<Applied> {
        let worker = self.worker();
        executor_with(self.store, providers, &worker)
            .begin(&self.plan, &Tally::of(&self.plan.intents), &self.freeze)
            .await?
            .carry_out(&self.plan.with_steps(), &Pace::alone(), &mut watch)
            .await
    }

    /// Applies the plan; breaks off at the moment of this number, as if the process had died there.
    /// Whether it got so far.
    pub async fn break_off_at(&self, number: usize) -> bool {
        let mut at = 0;
        let watch = |_: Moment<'_>| {
            at += 1;
            if at > number { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let applied = self.apply(watch).await.unwrap();
        assert_eq!(applied.is_whole(), at <= number, "{applied:?}");
        at > number
    }

    /// How each intent ended that has steps: that of `u` first.
    pub async fn ends(&self) -> Vec<IntentEnd> {
        let applied = self.apply(|_| ControlFlow::Continue(())).await.unwrap();
        applied.intents.into_iter().map(|(_, end)| end).collect()
    }

    /// Applies the plan and asks the provider, in turns, until all is done.
    pub async fn finish(&self) {
        for _ in 0..5 {
            if self.apply(|_| ControlFlow::Continue(())).await.unwrap().is_whole() {
                return;
            }
            self.converge().await;
        }
        panic!("{:?}", self.ends().await);
    }

    /// As the command `converge` does over the tenant.
    pub async fn converge(&self) -> Vec<Learned> {
        self.converge_through(&providers(Sandbox::well_behaved(self.store))).await
    }

    /// As [`Night::converge`], with providers of a test's own.
    pub async fn converge_through(&self, providers: &Providers<'_>) -> Vec<Learned> {
        let worker = worker("op", 0);
        let executor = executor_with(self.store, providers, &worker);
        let of_tenant = |tenant: &TenantId| tenant.as_str() == self.tenant;
        let mut open = self.store.open_steps().await.unwrap();
        open.retain(|r| of_tenant(&r.tenant_id));
        let mut learned = executor.converge_steps(open).await.unwrap();
        let ledgers = self.store.read_scope(&self.freeze.scope).await.unwrap();
        let evidence = self.store.evidence().await.unwrap();
        let as_of = self.freeze.frozen_at;
        let decided = make(&ledgers, &self.freeze.scope, &Policy::default(), as_of, &evidence).unwrap();
        let mut open = self.store.open_steps().await.unwrap();
        open.retain(|r| r.step.ledger == Ledger::Payments && of_tenant(&r.tenant_id));
        let ours: BTreeSet<_> = open.into_iter().map(|r| (r.tenant_id, r.step.id)).collect();
        let about = executor.converge_charges(&decided.intents, &ledgers, &ours).await.unwrap();
        learned.extend(about.into_iter().filter(|l| !ours.contains(&(l.tenant_id.clone(), l.id.clone()))));
        learned
    }

    /// The tenant's rows, as if they were those of a tenant `t`.
    pub async fn rows(&self) -> Ledgers {
        sorted(of_tenant(self.store.read_scope(&self.freeze.scope).await.unwrap(), "t"))
    }

    /// What the provider was asked: charge, kind, amount and end of each request.
    pub async fn requests(&self, db: &Db) -> Vec<Vec<String>> {
        let sql =
            "SELECT charge, kind, amount_minor, status FROM onefold_sandbox_requests WHERE tenant_id = ";
        db.rows(&format!("{sql}'{}' ORDER BY charge, kind, status", self.tenant)).await
    }

    /// What the provider has given back of each charge.
    pub async fn refunded(&self, db: &Db) -> Vec<Vec<String>> {
        let sql = "SELECT charge, refunded_minor FROM onefold_sandbox_charges WHERE tenant_id = ";
        db.rows(&format!("{sql}'{}' AND refunded_minor > 0 ORDER BY charge", self.tenant)).await
    }

    /// A row's status and version.
    pub async fn row(&self, ledger: Ledger, id: &str) -> (String, String) {
        let row =
            self.store.row_state(ledger, &self.tenant.as_str().into(), &id.into()).await.unwrap().unwrap();
        (row.status, row.version.to_string())
    }

    /// A row's status.
    pub async fn status(&self, ledger: Ledger, id: &str) -> String {
        self.row(ledger, id).await.0
    }

    /// A statement about one row of this tenant, which is given another version, too.
    pub fn touch(&self, ledger: Ledger, id: &str, set: &str) -> String {
        let (tenant, name) = (&self.tenant, ledger.row_name());
        let comma = if set.is_empty() { "" } else { ", " };
        format!(
            "UPDATE {ledger} SET version = '77'{comma}{set} WHERE tenant_id = '{tenant}' AND {name}_id = '{id}'"
        )
    }
}

/// Decides a freeze's scope and saves the plan.
pub async fn plan_under(store: &Store, freeze: &Freeze, plan_id: &str) -> Plan {
    let ledgers = store.read_scope(&freeze.scope).await.unwrap();
    let evidence = store.evidence().await.unwrap();
    let decided = make(&ledgers, &freeze.scope, &Policy::default(), freeze.frozen_at, &evidence).unwrap();
    let plan = decided.into_plan(plan_id.to_owned(), clock(), Some(freeze.freeze_id.clone()));
    store.save_plan(&plan, &KeepChanges::default(), maker("op")).await.unwrap();
    plan
}

/// A process that lives beside others.
pub fn living_worker(actor: &str, token: i64, name: &str) -> Worker {
    let owner = format!("{actor}#here/{}-{name}", std::process::id());
    Worker { owner, ..worker(actor, token) }
}

/// A process that carries out steps, which is not there any more when the next one is made.
pub fn worker(actor: &str, token: i64) -> Worker {
    thread_local! {
        static COUNT: Cell<u32> = const { Cell::new(0) };
    }
    COUNT.set(COUNT.get() + 1);
    // No process has such a number.
    let owner = format!("{actor}#here/{}-{}", 1_000_000_000 + COUNT.get(), std::process::id());
    Worker { actor: actor.to_owned(), owner, token, lease: Span::from_secs(60) }
}

/// No command of a site stands in for SQL.
static NONE: std::sync::LazyLock<Commands> = std::sync::LazyLock::new(Commands::default);

/// One provider for all payments.
pub fn providers<'s>(provider: impl Provider + 's) -> Providers<'s> {
    Providers::default().with(ANY, provider)
}

pub fn executor_with<'a>(store: &'a Store, providers: &'a Providers<'a>, worker: &'a Worker) -> Executor<'a> {
    Executor { store, providers, worker, commands: &NONE, approval: &NO_APPROVAL, clock }
}

pub fn executor<'a>(store: &'a Store, worker: &'a Worker) -> Executor<'a> {
    let providers = Box::leak(Box::new(Providers::default().with(ANY, Sandbox::well_behaved(store))));
    Executor { store, providers, worker, commands: &NONE, approval: &NO_APPROVAL, clock }
}

/// A night's rows, the requests about them, and what was given back of each charge.
pub type Outcomes = (Ledgers, Vec<Vec<String>>, Vec<Vec<String>>);

/// What must be the same however often a night was disturbed.
pub async fn outcome(night: &Night<'_>, db: &Db) -> Outcomes {
    (night.rows().await, night.requests(db).await, night.refunded(db).await)
}

/// The outcome of a night that nobody disturbs.
pub async fn calm(store: &Store, db: &Db) -> Outcomes {
    let night = Night::begin(store, "calm").await;
    night.finish().await;
    let (rows, requests, refunded) = outcome(&night, db).await;
    let kept = |status: &str| rows.orders.iter().filter(|o| o.status.as_str() == status).count();
    assert_eq!((kept("PAID"), kept("REFUNDED"), kept("CANCELLED")), (2, 2, 1));
    assert_eq!(requests.len(), 4, "{requests:?}");
    assert_eq!(refunded.len(), 3, "{refunded:?}");
    (rows, requests, refunded)
}
