//! What holds for every ledger, on random ones that are bent in many ways at once.

mod common;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use common::book::{apply, at};
use common::random::{crowd, ledgers, policy};
use onefold::core::evidence::Evidence;
use onefold::core::ids::*;
use onefold::core::join::Joined;
use onefold::core::ledger::*;
use onefold::core::plain::{Basis, Listed, Listing};
use onefold::core::plan::*;
use onefold::core::plan_text::IntentTexts;
use onefold::core::policy::*;
use onefold::core::recheck::{Recheck, undo};
use onefold::core::scope::Scope;
use onefold::core::status::{HoldStatus, Ledger, PaymentStatus};
use onefold::core::tally::Tally;
use onefold::core::verify::verify;
use onefold::files::{self, LedgerFiles, Origin, Portions, ReadOptions};
use proptest::prelude::*;
use proptest::sample::{Index, select};

fn planned(ledgers: &Ledgers, policy: &Policy, evidence: &Evidence) -> Plan {
    make(ledgers, &Scope::default(), policy, at(3600), evidence).unwrap().into_plan(
        "p".to_owned(),
        at(3600),
        None,
    )
}

/// Money left by (tenant, charge), however many rows tell of it.
fn left_by_charge(ledgers: &Ledgers) -> BTreeMap<(String, String), i64> {
    let mut left: BTreeMap<(String, String), i64> = BTreeMap::new();
    for row in ledgers.payments.iter().filter(|p| p.status == PaymentStatus::Captured) {
        let entry = left.entry(charge_of(row)).or_default();
        *entry = (*entry).max(row.left_minor());
    }
    left
}

fn charge_of(row: &Payment) -> (String, String) {
    let charge = match &row.provider_txn_id {
        Some(txn) => format!("{} {txn}", row.provider),
        None => format!("row {}", row.payment_id),
    };
    (row.tenant_id.to_string(), charge)
}

/// Carries out the steps of every intent; their moves stand in the evidence.
fn applied(ledgers: &Ledgers, plan: &Plan) -> (Ledgers, Evidence) {
    let (mut after, mut evidence) = (ledgers.clone(), Evidence::default());
    for intent in &plan.intents {
        apply(&mut after, &intent.tenant_id, &intent.steps, &mut evidence);
    }
    (after, evidence)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_rows_does_not_matter(
        ledgers in ledgers(), policy in policy(), seed in any::<u64>(),
    ) {
        let plan = planned(&ledgers, &policy, &Evidence::default());
        let mut shuffled = ledgers.clone();
        let turn = |len: usize| if len == 0 { 0 } else { (seed % len as u64) as usize };
        shuffled.orders.reverse();
        let by = turn(shuffled.orders.len());
        shuffled.orders.rotate_left(by);
        let by = turn(shuffled.payments.len());
        shuffled.payments.rotate_left(by);
        shuffled.inventory.reverse();
        let by = turn(shuffled.messages.len());
        shuffled.messages.rotate_left(by);
        prop_assert_eq!(plan, planned(&shuffled, &policy, &Evidence::default()));
    }

    #[test]
    fn every_order_and_orphan_is_in_one_intent_and_the_sums_close(
        ledgers in ledgers(), policy in policy(),
    ) {
        let plan = planned(&ledgers, &policy, &Evidence::default());
        let orders: usize = plan.intents.iter().map(|i| i.orders.len()).sum();
        let distinct: BTreeSet<_> =
            plan.intents.iter().flat_map(|i| i.orders.iter().map(|o| (&i.tenant_id, o))).collect();
        prop_assert_eq!((orders, distinct.len()), (ledgers.orders.len(), ledgers.orders.len()));

        let known: HashSet<_> = ledgers.orders.iter().map(|o| (&o.tenant_id, &o.order_id)).collect();
        let lost = |tenant: &TenantId, order: &Option<OrderId>| {
            order.as_ref().is_none_or(|o| !known.contains(&(tenant, o)))
        };
        let expected = ledgers.payments.iter().filter(|p| lost(&p.tenant_id, &p.order_id)).count()
            + ledgers.inventory.iter().filter(|h| lost(&h.tenant_id, &h.order_id)).count()
            + ledgers.messages.iter().filter(|m| lost(&m.tenant_id, &m.order_id)).count();
        let orphans: Vec<_> =
            plan.intents.iter().flat_map(|i| i.orphans.iter().map(|o| (&i.tenant_id, o))).collect();
        prop_assert_eq!((orphans.len(), orphans.iter().collect::<BTreeSet<_>>().len()), (expected, expected));

        let mut live = BTreeMap::new();
        for hold in &ledgers.inventory {
            let held = hold.status == HoldStatus::Held && hold.expires_at.is_none_or(|e| e > at(3600));
            if held || hold.status == HoldStatus::Confirmed {
                *live.entry((hold.tenant_id.clone(), hold.show_id.clone())).or_insert(0) += i128::from(hold.quantity);
            }
        }
        let sums: BTreeMap<_, _> =
            plan.sums.stock.iter().map(|s| ((s.tenant_id.clone(), s.show_id.clone()), s.live)).collect();
        prop_assert_eq!(sums, live);
        for sum in &plan.sums.money {
            let refunds: i64 = plan.intents.iter().filter(|i| i.tenant_id == sum.tenant_id)
                .flat_map(|i| &i.steps)
                .filter(|s| s.to == "REFUNDED" && s.currency == Some(sum.currency))
                .filter_map(|s| s.amount_minor)
                .sum();
            prop_assert_eq!(sum.to_refund, i128::from(refunds));
            let parts = sum.parts();
            prop_assert_eq!(parts[0], parts[1..].iter().sum::<i128>());
        }
    }

    #[test]
    fn what_is_undecided_is_not_touched_and_what_is_decided_says_so(
        ledgers in ledgers(), policy in policy(),
    ) {
        for intent in planned(&ledgers, &policy, &Evidence::default()).intents {
            let (steps, keep) = (!intent.steps.is_empty(), intent.keep.is_some());
            let reasons = !intent.review_reasons.is_empty();
            let fits = match intent.outcome {
                Outcome::Clean => !steps && !reasons,
                Outcome::Keep => steps && keep && !reasons,
                Outcome::Unwind => steps && !keep && !reasons,
                Outcome::Review => !steps && !keep && reasons,
                Outcome::Unsettled => !steps && !keep && !reasons,
            };
            prop_assert!(fits, "{:?}", intent);
            prop_assert!(intent.findings.is_sorted() && intent.review_reasons.iter().all(|r| intent.findings.contains(r)));
        }
    }

    #[test]
    fn every_step_is_a_legal_move_of_a_row_of_its_intent_and_belongs_to_it_alone(
        ledgers in ledgers(), policy in policy(),
    ) {
        let plan = planned(&ledgers, &policy, &Evidence::default());
        let mut keys = HashSet::new();
        for intent in &plan.intents {
            for step in &intent.steps {
                prop_assert!(step.ledger.may_move(&step.from, &step.to), "{:?}", step);
                prop_assert!(keys.insert(&step.step_key), "twice: {:?}", step);
                let seen = intent.seen.iter().find(|r| r.ledger == step.ledger && r.id == step.id);
                let seen = seen.expect("a step moves a row that was seen");
                match &step.version {
                    Some(version) => prop_assert_eq!((version, &step.from), (&seen.version, &seen.status)),
                    None => prop_assert_ne!(&step.from, &seen.status),
                }
            }
        }
    }

    #[test]
    fn no_charge_gives_back_more_than_it_has_left(ledgers in ledgers(), policy in policy()) {
        let plan = planned(&ledgers, &policy, &Evidence::default());
        let left = left_by_charge(&ledgers);
        let mut refunded: BTreeMap<(String, String), i64> = BTreeMap::new();
        for intent in &plan.intents {
            for step in intent.steps.iter().filter(|s| s.ledger == Ledger::Payments && s.to == "REFUNDED") {
                let row = ledgers.payments.iter()
                    .find(|p| p.tenant_id == intent.tenant_id && p.payment_id.as_str() == step.id.as_str())
                    .unwrap();
                prop_assert!(refunded.insert(charge_of(row), step.amount_minor.unwrap()).is_none(), "twice");
            }
        }
        for (charge, amount) in refunded {
            prop_assert!(amount > 0 && amount <= left[&charge], "{:?} gives back {}", charge, amount);
        }
    }

    #[test]
    fn money_leaves_before_stock_and_an_order_closes_last(ledgers in ledgers(), policy in policy()) {
        for intent in planned(&ledgers, &policy, &Evidence::default()).intents {
            for (i, closing) in intent.steps.iter().enumerate() {
                if !(closing.to == "CANCELLED" || closing.to == "REFUNDED" && closing.ledger == Ledger::Orders) {
                    continue;
                }
                let of_order = |step: &Step| {
                    let id = step.id.as_str();
                    let order = match step.ledger {
                        Ledger::Orders => Some(id.into()),
                        Ledger::Payments => ledgers.payments.iter().find(|r| r.payment_id.as_str() == id).unwrap().order_id.clone(),
                        Ledger::Inventory => ledgers.inventory.iter().find(|r| r.hold_id.as_str() == id).unwrap().order_id.clone(),
                        Ledger::Messages => ledgers.messages.iter().find(|r| r.message_id.as_str() == id).unwrap().order_id.clone(),
                    };
                    order.is_some_and(|o: OrderId| o.as_str() == closing.id.as_str())
                };
                prop_assert!(!intent.steps[i + 1..].iter().any(of_order), "{:?}", intent.steps);
                let before: Vec<&Step> = intent.steps[..i].iter().filter(|s| of_order(s)).collect();
                let last_money = before.iter().rposition(|s| s.ledger == Ledger::Payments);
                let first_stock = before.iter().position(|s| s.ledger == Ledger::Inventory);
                prop_assert!(last_money.zip(first_stock).is_none_or(|(money, stock)| money < stock));
            }
        }
    }

    #[test]
    fn a_plan_that_was_applied_holds_and_nothing_is_left_to_do(ledgers in ledgers(), policy in policy()) {
        let plan = planned(&ledgers, &policy, &Evidence::default());
        let (after, evidence) = applied(&ledgers, &plan);

        let verified = verify(&plan, &after);
        prop_assert!(verified.holds(), "{:#?}\n{:#?}", verified, plan);

        let again = planned(&after, &policy, &evidence);
        for was in plan.intents.iter().filter(|i| matches!(i.outcome, Outcome::Keep | Outcome::Unwind)) {
            let mut now = again.intents.iter().filter(|i| {
                i.tenant_id == was.tenant_id
                    && (i.orders.iter().any(|o| was.orders.contains(o)) || i.orphans.iter().any(|o| was.orphans.contains(o)))
            });
            prop_assert!(now.all(|i| i.outcome == Outcome::Clean), "{:#?}\nbecame\n{:#?}", was, again.intents);
        }
        for (was, now) in plan.intents.iter().zip(&again.intents) {
            if matches!(was.outcome, Outcome::Review | Outcome::Unsettled) && was.orders == now.orders {
                prop_assert_eq!(was.outcome, now.outcome);
            }
        }
    }

    #[test]
    fn an_intent_half_applied_is_as_planned_once_our_moves_are_undone(
        ledgers in ledgers(), policy in policy(), stop in any::<Index>(),
    ) {
        let plan = planned(&ledgers, &policy, &Evidence::default());
        let (mut after, mut evidence) = (ledgers.clone(), Evidence::default());
        let mut own = Vec::new();
        for intent in plan.intents.iter().filter(|i| !i.steps.is_empty()) {
            let done = stop.index(intent.steps.len() + 1);
            own.extend(apply(&mut after, &intent.tenant_id, &intent.steps[..done], &mut evidence));
        }
        undo(&mut after, &own);
        prop_assert_eq!(&after, &ledgers);
        let joined = Joined::new(&after, &policy, plan.as_of);
        let recheck = Recheck::new(&joined);
        for intent in plan.intents.iter().filter(|i| !i.steps.is_empty()) {
            prop_assert_eq!(recheck.compare(intent, &policy, plan.as_of, &evidence), Ok(()));
        }
    }

    /// The quick way, on which plain purchases are never looked at one by one, makes the plan of the whole way: of rows
    /// as they are found, and of those that some of our steps have moved.
    #[test]
    fn plain_purchases_are_decided_as_if_each_were_looked_at(
        ledgers in crowd(), policy in policy(), piece in 64..4096u64, at_once in 1..9usize,
        from in select(vec![None, Some(100)]), moved in any::<bool>(), most in 0..4usize,
    ) {
        let (ledgers, evidence) = match moved {
            true => applied(&ledgers, &planned(&ledgers, &policy, &Evidence::default())),
            false => (ledgers, Evidence::default()),
        };
        let scope = Scope { from: from.map(at), ..Scope::default() };
        let whole = make(&ledgers, &scope, &policy, at(3600), &evidence).unwrap();
        let whole = whole.into_plan("p".to_owned(), at(3600), None);

        let dir = tempfile::tempdir().unwrap();
        files::write(dir.path(), &ledgers).unwrap();
        let named = LedgerFiles::in_dir(dir.path()).unwrap();
        let options = ReadOptions::default();
        let portions = Portions { bytes: piece, orders: at_once };
        let basis = Basis { policy, as_of: at(3600), evidence };
        let sifted = files::sift(Origin::Files(&named), &options, &basis, portions, &|_, _| {}).unwrap();
        let plan = |intents| {
            let plan = sifted.plan(&scope, Listing { intents, texts: true }, "p".to_owned(), at(3600));
            plan.unwrap().unwrap()
        };
        let quick = plan(Listed::Every);
        prop_assert_eq!((&quick.plan, quick.unlisted), (&whole, Tally::default()));
        prop_assert!(quick.plan.digest_matches());

        let notable = || whole.intents.iter().filter(|i| i.outcome != Outcome::Clean);
        for listed in [Listed::ButPlain, Listed::First(most)] {
            let brief = plan(listed);
            let mut all = Tally::of(&brief.plan.intents);
            all.add_all(&brief.unlisted);
            prop_assert_eq!(all, Tally::of(&whole.intents));
            let listed = brief.plan.intents.iter().filter(|i| i.outcome != Outcome::Clean);
            let listed: Vec<_> = listed.map(|i| &i.intent_id).collect();
            prop_assert!(notable().take(most).map(|i| &i.intent_id).eq(listed.iter().copied().take(most)));
            prop_assert!(notable().all(|i| !i.outcome.is_undecided() || listed.contains(&&i.intent_id)));
            prop_assert_eq!((&brief.plan.digest, &brief.plan.sums), (&whole.digest, &whole.sums));
            prop_assert_eq!(
                (&brief.plan.outside_sums, brief.plan.live_orders),
                (&whole.outside_sums, whole.live_orders)
            );
            let text = |texts: &IntentTexts| texts.pieces().collect::<Vec<_>>().join(",");
            prop_assert_eq!(text(&brief.texts), text(&IntentTexts::of(&whole.intents)));
        }
    }
}
