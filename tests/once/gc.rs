//! Records on their way down the tiers, on every database: what each tier keeps, cut off at any moment, two at
//! once, and beside those who take the same keys.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use onefold::core::hash::sha256;
use onefold::core::idempotency::{
    Decision, KeyRecord, KeyState, Known, Named, RequestDigest, Retention, decide, decide_archived,
};
use onefold::core::ids::{IdempotencyKey, TenantId};
use onefold::core::retention::{RetentionPolicy, Why, key_sha256};
use onefold::core::time::{Span, Timestamp};
use onefold::execute::gc::{Gc, Swept};
use onefold::store::idempotency::{Finished, Holder, Outcome};
use onefold::store::journal::Search;
use onefold::store::retention::OpenWork;
use onefold::store::unique::Unique;
use onefold::store::{Places, Queries, Statuses, Store};

use super::machine::digest;
use crate::common::databases::{Db, Kind, at_once};
use crate::on_every_database;

const HOUR: i64 = 3600 * 1_000_000;

/// Whose machine's clock is wrong by decades.
fn holder(owner: &str) -> Holder {
    Holder {
        actor: owner.to_owned(),
        owner: owner.to_owned(),
        lease: Span::from_secs(60),
        clock: || Timestamp::from_micros(i64::MAX / 4),
    }
}

fn tenant() -> TenantId {
    "t".into()
}

fn key(name: &str) -> IdempotencyKey {
    name.into()
}

fn request() -> RequestDigest {
    digest(&[("argv[0]", "refund"), ("argv[1]", "O-502")])
}

/// An hour, two, three, and four.
fn policy() -> RetentionPolicy {
    let [hot, replay, dispute, archive] = [1, 2, 3, 4].map(|hours| Span::from_micros(hours * HOUR));
    RetentionPolicy { client_retry: hot, queue: hot, longest_replay: hot, replay, dispute, archive }
}

async fn set(store: &Store) {
    assert!(store.set_retention(&holder("ada"), None, &policy(), None).await.unwrap());
}

fn outcome(state: KeyState) -> Outcome {
    Outcome { exit_code: Some(3), result: Some("the body".to_owned()), ..Outcome::bare(state, "so it ended") }
}

/// Runs a key to this end.
async fn ended(store: &Store, name: &str, state: KeyState) {
    let (a, tenant) = (holder("a"), tenant());
    let names = [Named::order("O-502")];
    let keep_for = Span::from_secs(60);
    let hold =
        store.take_key(&a, (&tenant, &key(name)), &request(), keep_for, &names).await.unwrap().unwrap();
    let hold = store.start_key(&hold, a.lease).await.unwrap().unwrap();
    if state != KeyState::Processing {
        assert_eq!(store.finish_key(&a, &hold, &outcome(state)).await.unwrap(), Finished::Recorded);
    }
}

async fn age(db: &Db, hours: i64) {
    db.run(format!("UPDATE onefold_idempotency SET last_seen_us = last_seen_us - {}", hours * HOUR)).await;
}

fn gc<'a>(store: &'a Store, holder: &'a Holder, batch: u32) -> Gc<'a> {
    Gc { store, holder, batch, dry_run: false }
}

async fn sweep(store: &Store) -> Swept {
    gc(store, &holder("gc"), 2).run(|_| ()).await.unwrap()
}

async fn known(store: &Store, name: &str) -> Option<Known> {
    store.known_key(&tenant(), &key(name)).await.unwrap().map(|(known, _)| known)
}

async fn record(store: &Store, name: &str) -> KeyRecord {
    match known(store, name).await {
        Some(Known::Record(record)) => record,
        other => panic!("{name}: {other:?}"),
    }
}

/// Polls a future so often at most, and drops it then, as if its process had been killed.
async fn cut<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut so_far = 0;
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            so_far += 1;
            if so_far >= polls { Poll::Ready(None) } else { Poll::Pending }
        }
    })
    .await
}

/// Cuts gc off at growing numbers of polls and runs it again: each time the keys end where `calm` says. How often
/// it can be cut off is up to the machine, which has some answers at once: it begins anew until that was often.
async fn cut_everywhere(db: &Db, store: &Store, calm: &[(Retention, KeyState, Option<u8>, Option<String>)]) {
    let is_long = std::env::var_os("ONEFOLD_TEST_HUNT").is_some();
    let stride = if db.kind == Kind::Sqlite || is_long { 1 } else { 2 };
    let (mut cuts, mut polls) = (0, 1);
    for run in 0.. {
        let names = six(db, store, &format!("cut-{run}")).await;
        let ended = cut(gc(store, &holder("gc"), 2).run(|_| ()), polls).await;
        places(db, store, &names).await;
        sweep(store).await;
        assert_eq!(places(db, store, &names).await, calm, "cut off after {polls}");
        polls += stride;
        if ended.is_none() {
            cuts += 1;
        } else if cuts > 5 {
            break;
        } else {
            assert!(run < 100, "{cuts}");
            polls = 1;
        }
    }
}

/// Where each key is: in a tier, or in the archive; never in both, and never in none.
async fn places(
    db: &Db,
    store: &Store,
    names: &[String],
) -> Vec<(Retention, KeyState, Option<u8>, Option<String>)> {
    let mut places = Vec::new();
    for name in names {
        // One statement: what was cut off may be committed between two.
        let everywhere = format!(
            "SELECT state FROM onefold_idempotency WHERE idempotency_key = '{name}' UNION ALL \
             SELECT state FROM onefold_idempotency_archive WHERE key_sha256 = '{}'",
            key_sha256(&tenant(), &key(name))
        );
        assert_eq!(db.rows(&everywhere).await.len(), 1, "{name}");
        places.push(match known(store, name).await.unwrap() {
            Known::Record(r) => (r.retention, r.state, r.exit_code, r.result_ref),
            Known::Archived(a) => (Retention::Archive, a.state, a.exit_code, a.result_ref),
        });
    }
    places
}

/// The keys beside the orders on this database, and the journal on another.
async fn apart(db: &Db, journal: &Db) -> Store {
    let places = Places { journal: journal.url.clone(), ..Places::one(&db.url) };
    let store = Store::open(&places, Queries::default(), Statuses::default(), true).await.unwrap();
    store.init().await.unwrap();
    store.install_unique(Unique::Record).await.unwrap();
    store.of_each_keys().await.unwrap().swap_remove(1)
}

/// Six keys, two in each of the windows below hot: `PREFIX-0`, …
async fn six(db: &Db, store: &Store, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for at in 0..6_i64 {
        let name = format!("{prefix}-{at}");
        ended(store, &name, if at % 2 == 0 { KeyState::Succeeded } else { KeyState::Failed }).await;
        let back = (at / 2 + 1) * HOUR + HOUR / 2;
        db.run(format!(
            "UPDATE onefold_idempotency SET last_seen_us = last_seen_us - {back} WHERE idempotency_key = '{name}'"
        ))
        .await;
        names.push(name);
    }
    names
}

on_every_database! {
    async fn each_tier_keeps_what_it_says_and_a_repeat_is_recognised_in_all(db) {
        let store = db.store().await;
        set(&store).await;
        ended(&store, "k", KeyState::Failed).await;
        let full = record(&store, "k").await;
        assert_eq!(sweep(&store).await.moved.len(), 0, "its window is not over");
        assert_eq!(record(&store, "k").await, full);
        let result_ref = Some(format!("sha256:{}", sha256(b"the body")));

        age(db, 1).await;
        assert_eq!(sweep(&store).await.moved, [((Retention::Hot, Retention::Replay), 1)].into());
        let replay = record(&store, "k").await;
        let expected = KeyRecord {
            result: None, result_ref: result_ref.clone(), retention: Retention::Replay,
            last_seen: replay.last_seen, ..full.clone()
        };
        assert_eq!(replay, expected);

        age(db, 1).await;
        assert_eq!(sweep(&store).await.moved, [((Retention::Replay, Retention::Dispute), 1)].into());
        let dispute = record(&store, "k").await;
        let expected = KeyRecord {
            digest: RequestDigest::folded(full.digest.whole()), retention: Retention::Dispute,
            last_seen: dispute.last_seen, ..replay
        };
        assert_eq!(dispute, expected);
        assert_eq!(decide(Some(&dispute), &request(), dispute.last_seen), Decision::ReturnResult);

        age(db, 1).await;
        assert_eq!(sweep(&store).await.moved, [((Retention::Dispute, Retention::Archive), 1)].into());
        let Some(Known::Archived(archived)) = known(&store, "k").await else { panic!("not archived") };
        assert_eq!((archived.state, archived.exit_code, &archived.result_ref), (KeyState::Failed, Some(3), &result_ref));
        assert_eq!((&archived.digest, archived.first_seen), (&full.digest.whole(), full.first_seen));
        assert_eq!(decide_archived(&archived, &request()), Decision::ReturnCode);
        assert_eq!(db.rows("SELECT state FROM onefold_idempotency").await.len(), 0);
        assert_eq!(store.take_key(&holder("b"), (&tenant(), &key("k")), &request(), Span::from_secs(1), &[]).await.unwrap(), None);
        assert_eq!(known(&store, "k").await, Some(Known::Archived(archived)), "and nothing was inserted");
        assert_eq!(store.keys_of(None, &Named::order("O-502")).await.unwrap(), [(tenant(), key("k"))]);
        assert_eq!(sweep(&store).await, Swept::default());
        let told: Vec<_> = store.history(&Search::default()).await.unwrap().into_iter()
            .filter(|entry| entry.event == "keys-moved").filter_map(|entry| entry.note).collect();
        assert_eq!(told, ["hot → replay 1", "replay → dispute 1", "dispute → archive 1"]);
    }

    async fn past_several_windows_a_record_goes_straight_to_where_it_belongs(db) {
        let store = db.store().await;
        set(&store).await;
        ended(&store, "k", KeyState::Succeeded).await;
        age(db, 99).await;
        assert_eq!(sweep(&store).await.moved, [((Retention::Hot, Retention::Archive), 1)].into());
        let Some(Known::Archived(archived)) = known(&store, "k").await else { panic!("not archived") };
        assert_eq!(archived.result_ref, Some(format!("sha256:{}", sha256(b"the body"))));
    }

    async fn what_has_not_ended_never_moves_and_what_is_held_by_nobody_is_unknown(db) {
        let store = db.store().await;
        set(&store).await;
        ended(&store, "retryable", KeyState::FailedRetryable).await;
        ended(&store, "unknown", KeyState::Unknown).await;
        ended(&store, "held", KeyState::Processing).await;
        ended(&store, "lapsed", KeyState::Processing).await;
        let hold = store.take_key(&holder("a"), (&tenant(), &key("not begun")), &request(), Span::from_secs(1), &[]).await.unwrap();
        age(db, 99).await;
        db.run("UPDATE onefold_idempotency SET lease_until_us = 1 WHERE idempotency_key IN ('lapsed', 'not begun')").await;
        let dry = Gc { dry_run: true, ..gc(&store, &holder("gc"), 2) }.run(|_| ()).await.unwrap();
        let before = record(&store, "lapsed").await;
        assert_eq!((dry.fenced_off, before.state), (1, KeyState::Processing));
        let swept = sweep(&store).await;
        assert_eq!((swept.fenced_off, swept.moves()), (1, 0));
        let after = record(&store, "lapsed").await;
        assert_eq!((after.state, after.token), (KeyState::Unknown, before.token + 1));
        assert_eq!(record(&store, "held").await.state, KeyState::Processing);
        let told = store.history(&Search::default()).await.unwrap();
        let told = told.iter().rfind(|entry| entry.event == "key-taken-over").unwrap();
        assert_eq!((told.actor.as_str(), told.to.as_deref()), ("gc", Some("UNKNOWN")));
        // Its owner may still begin: nobody has taken it.
        assert!(store.start_key(&hold.unwrap(), Span::from_secs(60)).await.unwrap().is_some());
        assert_eq!(sweep(&store).await, Swept::default());
        for name in ["retryable", "unknown", "held", "lapsed", "not begun"] {
            assert_eq!(record(&store, name).await.retention, Retention::Hot, "{name}");
        }
    }

    async fn what_was_asked_for_since_it_was_read_stays(db) {
        let store = db.store().await;
        set(&store).await;
        let policy = store.retention().await.unwrap().unwrap();
        for to in [Retention::Replay, Retention::Archive] {
            let name = to.as_str();
            ended(&store, name, KeyState::Succeeded).await;
            age(db, 99).await;
            let aged = store.aged_keys(Retention::Hot, policy.policy.hot(), None, 9).await.unwrap();
            assert_eq!(aged.len(), 1);
            store.key_was_seen(&tenant(), &key(name)).await.unwrap();
            let before = record(&store, name).await;
            let moves = [(aged[0].clone(), to)];
            let ends = store.move_keys(&holder("gc"), &policy, &OpenWork::default(), &moves).await.unwrap().unwrap();
            assert_eq!(ends, [onefold::store::retention::MoveEnd::Meanwhile]);
            assert_eq!(record(&store, name).await, before);
            db.run(format!("UPDATE onefold_idempotency SET state = 'UNKNOWN' WHERE idempotency_key = '{name}'")).await;
        }
    }

    async fn by_a_policy_that_is_no_longer_set_nothing_moves(db) {
        let store = db.store().await;
        set(&store).await;
        let old = store.retention().await.unwrap().unwrap();
        ended(&store, "k", KeyState::Succeeded).await;
        age(db, 2).await;
        let aged = store.aged_keys(Retention::Hot, old.policy.hot(), None, 9).await.unwrap();
        let longer = RetentionPolicy { queue: Span::from_micros(2 * HOUR), ..policy() };
        let both = at_once((0..2).map(|_| store.set_retention(&A, Some(&old), &longer, Some("x")))).await;
        assert_eq!(both.into_iter().filter(|set| *set.as_ref().unwrap()).count(), 1);
        assert_eq!(store.move_keys(&holder("gc"), &old, &OpenWork::default(), &[(aged[0].clone(), Retention::Replay)]).await.unwrap(), None);
        assert_eq!(record(&store, "k").await.retention, Retention::Hot);
    }

    async fn a_key_that_was_run_again_behind_the_archives_back_is_kept_and_told(db) {
        let store = db.store().await;
        set(&store).await;
        ended(&store, "k", KeyState::Succeeded).await;
        age(db, 99).await;
        assert_eq!(sweep(&store).await.moves(), 1);
        let Some(Known::Archived(first)) = known(&store, "k").await else { panic!("not archived") };
        // A service that inserts without asking: its record is evidence, too.
        db.run("UPDATE onefold_idempotency_archive SET key_sha256 = 'aside'").await;
        ended(&store, "k", KeyState::Failed).await;
        db.run(format!("UPDATE onefold_idempotency_archive SET key_sha256 = '{}'", key_sha256(&tenant(), &key("k")))).await;
        age(db, 99).await;
        for _ in 0..2 {
            let swept = sweep(&store).await;
            assert_eq!((swept.moves(), swept.kept), (0, [(Why::ArchivedBefore, 1)].into()));
        }
        assert_eq!(record(&store, "k").await.state, KeyState::Failed);
        db.run("UPDATE onefold_idempotency SET idempotency_key = 'aside'").await;
        assert_eq!(known(&store, "k").await, Some(Known::Archived(first)));
    }

    async fn cut_off_at_any_moment_and_run_again_it_ends_as_if_undisturbed(db) {
        let store = db.store().await;
        set(&store).await;
        let names = six(db, &store, "calm").await;
        sweep(&store).await;
        let calm = places(db, &store, &names).await;
        let tiers: Vec<_> = calm.iter().map(|place| place.0).collect();
        use Retention::{Archive, Dispute, Replay};
        assert_eq!(tiers, [Replay, Replay, Dispute, Dispute, Archive, Archive]);
        cut_everywhere(db, &store, &calm).await;
    }

    async fn apart_from_the_journal_and_cut_off_at_any_moment_it_ends_the_same(db) {
        let journal = Db::new(Kind::Sqlite);
        let store = apart(db, &journal).await;
        set(&store).await;
        let names = six(db, &store, "calm").await;
        sweep(&store).await;
        let calm = places(db, &store, &names).await;
        cut_everywhere(db, &store, &calm).await;
    }

    async fn what_was_opened_since_it_was_looked_for_moves_nothing(db) {
        let elsewhere = Db::new(Kind::Sqlite);
        let beside = db.store().await;
        // Only a test moves a ledger from one journal to another.
        db.run("DELETE FROM onefold_belongs").await;
        for (store, journal) in [(beside, db), (apart(db, &elsewhere).await, &elsewhere)] {
            set(&store).await;
            ended(&store, "k", KeyState::Succeeded).await;
            age(db, 99).await;
            let policy = store.retention().await.unwrap().unwrap();
            let before = store.open_work().await.unwrap();
            let aged = store.aged_keys(Retention::Hot, policy.policy.hot(), None, 9).await.unwrap();
            let moves = [(aged[0].clone(), Retention::Archive)];
            journal.run("INSERT INTO onefold_plans (plan_id, digest, freeze_id, state, made_at_us, made_by, body) VALUES ('P', 'd', 'F', 'OPEN', 1, 'x', '{}')").await;
            assert_eq!(store.move_keys(&holder("gc"), &policy, &before, &moves).await.unwrap(), None);
            assert_eq!(record(&store, "k").await.retention, Retention::Hot);
            let now = store.open_work().await.unwrap();
            assert_eq!(now.plans, ["P"]);
            let ends = store.move_keys(&holder("gc"), &policy, &now, &moves).await.unwrap().unwrap();
            assert_eq!(ends, [onefold::store::retention::MoveEnd::Moved], "what is judged by it may move");
            // Of the other store: both have their keys in this database.
            db.run("DELETE FROM onefold_idempotency_archive").await;
            db.run("DELETE FROM onefold_idempotency_names").await;
        }
    }

    async fn two_at_once_move_each_record_once(db) {
        let store = db.store().await;
        set(&store).await;
        let mut names = Vec::new();
        for round in 0..4 {
            names.extend(six(db, &store, &format!("round-{round}")).await);
        }
        let [one, other] = [db.open().await, db.open().await];
        let (a, b) = (holder("a"), holder("b"));
        let sweepers = [gc(&one, &a, 3), gc(&other, &b, 4)];
        let swept: Vec<_> = at_once(sweepers.iter().map(|gc| gc.run(|_| ()))).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(swept.iter().map(Swept::moves).sum::<u64>(), 24, "{swept:?}");
        for why in swept.iter().flat_map(|swept| swept.kept.keys()) {
            assert_eq!(*why, Why::Meanwhile);
        }
        let tiers = places(db, &store, &names).await;
        assert_eq!(tiers.iter().filter(|place| place.0 == Retention::Archive).count(), 8);
        assert_eq!(sweep(&store).await.moves(), 0);
    }

    async fn a_key_that_is_archived_in_this_very_moment_is_not_taken(db) {
        let store = db.store().await;
        set(&store).await;
        let stores = [db.open().await, db.open().await, db.open().await];
        let sweeper = holder("gc");
        let rounds = if std::env::var_os("ONEFOLD_TEST_HUNT").is_some() { 200 } else { 12 };
        for round in 0..rounds {
            let name = format!("race-{round}");
            ended(&store, &name, KeyState::Succeeded).await;
            age(db, 99).await;
            let is_over = std::cell::Cell::new(false);
            let mut works: Vec<Pin<Box<dyn Future<Output = usize>>>> = Vec::new();
            for other in &stores[..2] {
                let (is_over, name) = (&is_over, &name);
                works.push(Box::pin(async move {
                    let mut taken = 0;
                    while !is_over.get() {
                        // As one who has read, before the record left, that there is none.
                        let hold = other.take_key(&A, (&tenant(), &key(name)), &request(), Span::from_secs(1), &[]).await;
                        taken += usize::from(hold.unwrap().is_some());
                    }
                    taken
                }));
            }
            works.push(Box::pin(async {
                while gc(&stores[2], &sweeper, 9).run(|_| ()).await.unwrap().moves() == 0 {}
                is_over.set(true);
                0
            }));
            assert_eq!(at_once(works).await, [0, 0, 0], "{name} was taken again");
            assert!(matches!(known(&store, &name).await, Some(Known::Archived(_))));
            assert_eq!(db.rows("SELECT state FROM onefold_idempotency").await.len(), 0);
        }
    }
}

static A: std::sync::LazyLock<Holder> = std::sync::LazyLock::new(|| holder("a"));
