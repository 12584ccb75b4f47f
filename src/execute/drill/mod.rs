//! Replays one purchase confirmation concurrently, and lets go wrong what goes wrong in a night: does one intent
//! have one result? The clients are as impatient as real ones, and ask again with the same key.

pub mod http;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::sync::{Semaphore, watch};

use crate::core::drill::{Counts, Fault, Tally, Told};
use crate::core::idempotency::{Archived, Decision, Known, decide, decide_archived};
use crate::core::ids::OrderId;
use crate::core::time::Span;
use crate::error::{Error, Result};
use crate::store::Queries;
use crate::store::idempotency::{Finished, Hold};
use crate::store::scratch::Scratch;
use crate::store::service::{Begun, Purchase, Service};

/// How long a key is held, and how long one that is held by another is waited for.
const PATIENT: (Span, Duration) = (Span::from_secs(30), Duration::from_secs(60));
/// The same where owners are to die or stall: nobody has time to wait for half a minute.
const SHORT_LEASE: Span = Span::from_micros(250_000);
/// How long a key is waited for whose owner is slow.
const IMPATIENCE: Duration = Duration::from_millis(50);
/// How often a waiting request looks again: first and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(50)];
/// How often a drill says that it is still at work.
const RENEWED: Duration = Duration::from_secs(30);

/// How a drill is done.
#[derive(Clone, Copy, Debug)]
pub struct Drill {
    pub rounds: u64,
    /// Of each round.
    pub requests: usize,
    /// How many of them are under way at a time.
    pub concurrency: usize,
    pub guard: bool,
    pub fault: Option<Fault>,
}

/// Does all rounds in a scratch; `watch` hears of each that is done.
///
/// # Errors
/// Failure, where the database fails; refused, where a rule of the guard does not hold.
pub async fn run(drill: Drill, scratch: &Scratch, watch: impl Fn(&Tally)) -> Result<Tally> {
    let rounds = async {
        let mut tally = Tally::default();
        for number in 1..=drill.rounds {
            round(drill, scratch, number, &mut tally).await?;
            watch(&tally);
        }
        Ok(tally)
    };
    let renewed = async {
        loop {
            tokio::time::sleep(RENEWED).await;
            scratch.renew().await?;
        }
    };
    tokio::select! {
        ended = rounds => ended,
        ended = renewed => ended,
    }
}

async fn round(drill: Drill, scratch: &Scratch, number: u64, tally: &mut Tally) -> Result<()> {
    let queries = Queries::default();
    let is_short = matches!(drill.fault, Some(Fault::CrashAfterCommit | Fault::LeaseOver));
    let (lease, patience) = PATIENT;
    let round = Round {
        drill,
        number,
        service: Service {
            database: &scratch.inside,
            queries: &queries,
            lease: if is_short { SHORT_LEASE } else { lease },
        },
        patience: if drill.fault == Some(Fault::Slow) { IMPATIENCE } else { patience },
        purchase: Purchase {
            tenant_id: "drill".into(),
            key: format!("{}/{number}", scratch.name).into(),
            user_id: "U-1".to_owned(),
            show_id: "S-1".to_owned(),
            item: "A-12".to_owned(),
            quantity: 1,
            amount_minor: 176_000,
            currency: "CNY".to_owned(),
        },
        slots: Semaphore::new(drill.concurrency),
        is_spared: AtomicBool::new(false),
        taken: Latch::default(),
        turned_away: Latch::default(),
        confirmed: Latch::default(),
    };
    let clients = try_join_all((0..drill.requests).map(|at| round.client(at))).await?;
    let orders = round.service.orders(&round.purchase.tenant_id, &round.purchase.key).await?;
    let orders: Vec<String> = orders.iter().map(ToString::to_string).collect();
    tally.add(&clients, &orders);
    Ok(())
}

/// Counts up, and lets others wait for that.
struct Latch(watch::Sender<usize>);

impl Default for Latch {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Latch {
    fn add(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    async fn reaches(&self, count: usize) {
        // It ends with an error only where nobody is there to count, and we are.
        let _ = self.0.subscribe().wait_for(|now| *now >= count).await;
    }
}

struct Round<'a> {
    drill: Drill,
    /// Counted from 1.
    number: u64,
    service: Service<'a>,
    /// How long a key that another holds is waited for.
    patience: Duration,
    purchase: Purchase,
    slots: Semaphore,
    /// Whether the fault of this round has happened to somebody.
    is_spared: AtomicBool,
    taken: Latch,
    /// How many were told that the key is being processed.
    turned_away: Latch,
    confirmed: Latch,
}

/// What a client hears of one try.
enum Heard {
    Order(OrderId),
    Differs(Vec<String>),
    StillProcessing,
    /// Nothing: it asks again, with the same key.
    Nothing,
}

impl Round<'_> {
    /// One client, until it has its answer.
    async fn client(&self, at: usize) -> Result<Told> {
        let mut told = Told::default();
        let mut purchase = self.purchase.clone();
        if self.drill.fault == Some(Fault::OtherDigest) && at + 1 == self.drill.requests {
            purchase.amount_minor += 1_000;
            if self.drill.guard {
                self.taken.reaches(1).await;
            }
        }
        for attempt in 1.. {
            let slot = self.slots.acquire().await.map_err(|e| Error::failure(e.to_string()))?;
            let began = Instant::now();
            // Ids of orders say where they come from: round, client and try.
            let order = OrderId::from(format!("O-{}-{}-{attempt}", self.number, at + 1));
            let heard = match self.drill.guard {
                true => self.guarded(&purchase, order, &mut told.counts).await?,
                false => self.unguarded(&purchase, order, &mut told.counts).await?,
            };
            drop(slot);
            if !matches!(heard, Heard::Nothing) {
                told.latencies.add(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
            }
            match heard {
                Heard::Order(order) => {
                    told.order = Some(order.to_string());
                    break;
                }
                Heard::Differs(differing) => {
                    told.differing = differing;
                    break;
                }
                Heard::StillProcessing => {
                    self.turned_away.add();
                    self.confirmed.reaches(1).await;
                }
                Heard::Nothing => {}
            }
        }
        Ok(told)
    }

    /// A service that writes an order whenever it is asked to.
    async fn unguarded(&self, purchase: &Purchase, order: OrderId, counts: &mut Counts) -> Result<Heard> {
        self.service.write(purchase, &order).await?;
        counts.inserts += 1;
        Ok(match self.drill.fault {
            Some(Fault::LoseAnswer) if self.happens() => lost(&mut counts.lost_answers),
            Some(Fault::CrashAfterCommit) if self.happens() => lost(&mut counts.crashes),
            _ => Heard::Order(order),
        })
    }

    /// A service that takes the key first, as the snippets say.
    async fn guarded(&self, purchase: &Purchase, order: OrderId, counts: &mut Counts) -> Result<Heard> {
        match self.service.begin(purchase, order.as_str()).await? {
            Begun::Taken(hold) => {
                self.taken.add();
                return self.owner(&hold, purchase, order, counts).await;
            }
            Begun::Archived(archived) => return archived_before(archived, purchase, counts),
            Begun::There => {}
        }
        let began = Instant::now();
        let mut pause = PAUSES[0];
        loop {
            let (record, now) = match self.service.look(purchase).await? {
                Some((Known::Record(record), now)) => (record, now),
                Some((Known::Archived(archived), _)) => return archived_before(archived, purchase, counts),
                None => return Err(broken("its record is gone")),
            };
            match decide(Some(&record), &purchase.digest(), now) {
                Decision::StillProcessing { .. } if began.elapsed() >= self.patience => {
                    counts.still_processing += 1;
                    return Ok(Heard::StillProcessing);
                }
                Decision::StillProcessing { .. } => {
                    counts.waits += 1;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES[1]);
                }
                Decision::TakeOver | Decision::Retry => {
                    if let Some(hold) = self.service.take_over(&record, order.as_str()).await? {
                        counts.take_overs += 1;
                        return self.owner(&hold, purchase, order, counts).await;
                    }
                }
                Decision::ReturnResult => {
                    counts.reuses += 1;
                    return match record.result_ref {
                        Some(order) => Ok(Heard::Order(order.into())),
                        None => Err(broken("its record names no order")),
                    };
                }
                Decision::Refuse { differing } => {
                    counts.refusals += 1;
                    return Ok(Heard::Differs(differing));
                }
                // No effect leaves the transaction, so there is none of which nobody knows.
                Decision::Take | Decision::FenceOff | Decision::SettleFirst | Decision::ReturnCode => {
                    return Err(broken(&format!("its state is {}", record.state)));
                }
            }
        }
    }

    /// Whoever has taken the key: the effect and its end, in one transaction.
    async fn owner(
        &self,
        hold: &Hold,
        purchase: &Purchase,
        order: OrderId,
        counts: &mut Counts,
    ) -> Result<Heard> {
        let fault = self.drill.fault.filter(|_| self.happens());
        match fault {
            Some(Fault::CrashAfterCommit) => {
                if self.number.is_multiple_of(2) {
                    self.service.break_off(purchase, &order).await?;
                }
                return Ok(lost(&mut counts.crashes));
            }
            Some(Fault::Slow) => {
                self.turned_away.reaches(self.drill.requests - 1).await;
                if !self.service.renew(hold).await? {
                    return Err(broken("an owner could not renew its lease"));
                }
            }
            Some(Fault::LeaseOver) => self.confirmed.reaches(1).await,
            Some(Fault::LoseAnswer | Fault::OtherDigest) | None => {}
        }
        match self.service.confirm(hold, purchase, &order).await? {
            Finished::Recorded => {
                counts.inserts += 1;
                self.confirmed.add();
                Ok(match fault {
                    Some(Fault::LoseAnswer) => lost(&mut counts.lost_answers),
                    _ => Heard::Order(order),
                })
            }
            Finished::Replaced => {
                counts.replaced += 1;
                Ok(Heard::Nothing)
            }
        }
    }

    /// Whether the fault of this round happens here: once a round.
    fn happens(&self) -> bool {
        !self.is_spared.swap(true, Ordering::SeqCst)
    }
}

/// The answer "done, archived": by the reference that is left of the result.
fn archived_before(archived: Archived, purchase: &Purchase, counts: &mut Counts) -> Result<Heard> {
    match decide_archived(&archived, &purchase.digest()) {
        Decision::Refuse { differing } => {
            counts.refusals += 1;
            Ok(Heard::Differs(differing))
        }
        _ => {
            counts.reuses += 1;
            let order = archived.result_ref.ok_or_else(|| broken("its fingerprint names no order"))?;
            Ok(Heard::Order(order.into()))
        }
    }
}

fn lost(count: &mut u64) -> Heard {
    *count += 1;
    Heard::Nothing
}

fn broken(what: &str) -> Error {
    Error::refused(format!("the key of a round is not as it can be: {what}"))
        .hint("this is a fault of onefold's: please report it, with the command line")
}
