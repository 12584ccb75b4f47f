//! Micro benches: how long one intent takes to be decided, one row to be read, one intent to be hashed.
//! `cargo bench --bench core`.

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use onefold::core::evidence::Evidence;
use onefold::core::ids::*;
use onefold::core::ledger::*;
use onefold::core::plain::Basis;
use onefold::core::plan::{Plan, make};
use onefold::core::policy::Policy;
use onefold::core::scope::Scope;
use onefold::core::status::*;
use onefold::core::time::{Span, Timestamp};
use onefold::files::{self, LedgerFiles, Origin, Portions, ReadOptions};

/// How many purchases a ledger has.
const PURCHASES: usize = 2000;

fn main() {
    divan::main();
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_794_398_400_000_000).plus(Span::from_secs(seconds))
}

/// Purchases of so many orders each: all hold stock, the first and the last are paid.
fn ledgers(orders: usize) -> Ledgers {
    let mut ledgers = Ledgers::default();
    for purchase in 0..PURCHASES {
        let (user_id, show_id) = (UserId::from(format!("U-{purchase:08}")), ShowId::from("SHOW-1"));
        let session_id = Some(SessionId::from(format!("S-{purchase:08}")));
        for nth in 0..orders {
            let created_at = at(nth as i64);
            let order_id = OrderId::from(format!("O-{purchase:08}-{nth}"));
            let paid = nth == 0 || nth + 1 == orders;
            ledgers.orders.push(Order {
                order_id: order_id.clone(),
                tenant_id: "default".into(),
                user_id: user_id.clone(),
                show_id: show_id.clone(),
                session_id: session_id.clone(),
                idempotency_key: None,
                item: Some("A".into()),
                quantity: 1,
                amount_minor: 36_000,
                currency: "CNY".parse().expect("a currency"),
                status: if paid { OrderStatus::Paid } else { OrderStatus::PendingPayment },
                source: None,
                trace_id: None,
                created_at,
                version: "1".into(),
                shard: 0,
            });
            ledgers.inventory.push(Hold {
                hold_id: format!("H-{purchase:08}-{nth}").into(),
                tenant_id: "default".into(),
                order_id: Some(order_id.clone()),
                user_id: user_id.clone(),
                show_id: show_id.clone(),
                session_id: session_id.clone(),
                item: Some("A".into()),
                quantity: 1,
                status: HoldStatus::Confirmed,
                created_at,
                expires_at: None,
                version: "1".into(),
                shard: 0,
            });
            if paid {
                ledgers.payments.push(Payment {
                    payment_id: format!("P-{purchase:08}-{nth}").into(),
                    tenant_id: "default".into(),
                    order_id: Some(order_id),
                    user_id: user_id.clone(),
                    show_id: show_id.clone(),
                    session_id: session_id.clone(),
                    amount_minor: 36_000,
                    refunded_minor: 0,
                    currency: "CNY".parse().expect("a currency"),
                    provider: "wechat".to_owned(),
                    provider_txn_id: Some(format!("T-{purchase:08}-{nth}")),
                    status: PaymentStatus::Captured,
                    created_at,
                    captured_at: Some(created_at),
                    version: "1".into(),
                    shard: 0,
                });
            }
        }
    }
    ledgers
}

/// A whole plan, by intent; of so many orders each.
#[divan::bench(args = [1, 2, 8])]
fn decide(bencher: Bencher, orders: usize) {
    let ledgers = ledgers(orders);
    let (scope, policy, evidence) = (Scope::default(), Policy::default(), Evidence::default());
    bencher
        .counter(ItemsCount::new(PURCHASES))
        .bench(|| make(&ledgers, &scope, &policy, at(60), &evidence).map(|decided| decided.intents.len()));
}

fn plan(orders: usize) -> Plan {
    let decided = make(&ledgers(orders), &Scope::default(), &Policy::default(), at(60), &Evidence::default());
    decided.expect("sums that close").into_plan("PL".to_owned(), at(60), None)
}

/// The digest of a plan, by intent.
#[divan::bench(args = [1, 2, 8])]
fn digest(bencher: Bencher, orders: usize) {
    let plan = plan(orders);
    bencher.counter(ItemsCount::new(PURCHASES)).bench(|| plan.digest_matches());
}

/// Four files into whole rows.
#[divan::bench]
fn parse(bencher: Bencher) {
    let (dir, bytes) = written();
    let named = LedgerFiles::in_dir(dir.path()).expect("four files");
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        files::read(&named, &ReadOptions::default(), &mut |_, _, _| {}).map(|(ledgers, _)| ledgers.len())
    });
}

/// The same files for a plan, with plain purchases kept narrow.
#[divan::bench]
fn sift(bencher: Bencher) {
    let (dir, bytes) = written();
    let named = LedgerFiles::in_dir(dir.path()).expect("four files");
    let options = ReadOptions::default();
    let basis = Basis { policy: Policy::default(), as_of: at(60), evidence: Evidence::default() };
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        files::sift(Origin::Files(&named), &options, &basis, Portions::default(), &|_, _| {}).is_some()
    });
}

fn written() -> (tempfile::TempDir, u64) {
    let dir = tempfile::tempdir().expect("a folder");
    files::write(dir.path(), &ledgers(1)).expect("files");
    let size = |ledger: &Ledger| {
        let path = dir.path().join(format!("{ledger}.csv"));
        path.metadata().expect("a file").len()
    };
    let bytes = Ledger::ALL.iter().map(size).sum();
    (dir, bytes)
}
