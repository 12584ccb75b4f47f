//! What must hold when a run is quiet, whatever happened before. Told from the bank's books and from what
//! triggers noted of every row, not from what onefold says of itself.

use std::collections::{BTreeMap, BTreeSet};

use onefold::core::plan::{Finding, Outcome};
use onefold::core::status::{Ledger, PaymentStatus};
use onefold::execute::IntentEnd;
use onefold::providers::Ask;
use onefold::store::Store;

use super::bank::{Bank, Books, Fate};
use super::ground::{Layout, Site};
use super::play::{End, statuses};

/// Everything that a run left behind.
struct Left<'a> {
    books: &'a Books,
    end: &'a End,
    orders: Vec<Vec<String>>,
    payments: Vec<Vec<String>>,
    holds: Vec<Vec<String>>,
    steps: Vec<Vec<String>>,
    journal: Vec<Vec<String>>,
    moved: Vec<Vec<String>>,
    changed: Vec<Vec<String>>,
    layout: Layout,
}

/// What is broken, in words. `calm` is what an undisturbed run leaves, where this one must leave the same.
pub async fn broken(site: &mut Site, bank: &Bank, end: &End, calm: Option<&Vec<Vec<String>>>) -> Vec<String> {
    let books = std::mem::take(&mut *bank.books.lock().unwrap());
    let left = Left {
        books: &books,
        end,
        orders: site.in_ledgers("SELECT order_id, status, amount_minor FROM orders ORDER BY 1").await,
        payments: site
            .in_ledgers("SELECT payment_id, order_id, status, amount_minor, refunded_minor FROM payments ORDER BY 1")
            .await,
        holds: site.in_ledgers("SELECT hold_id, order_id, status FROM inventory ORDER BY 1").await,
        steps: site
            .in_journal("SELECT step_key, ledger, row_id, to_status, state, version_after, provider_key, plan_id FROM onefold_steps ORDER BY 1")
            .await,
        journal: site
            .in_journal("SELECT event, ledger, row_id, from_status, to_status, version, note, actor FROM onefold_journal ORDER BY seq")
            .await,
        moved: site
            .in_ledgers("SELECT who, ledger, id, was, now, version, was_refunded, now_refunded FROM moved ORDER BY seq")
            .await,
        changed: site.in_journal("SELECT step_key, was, now FROM changed ORDER BY seq").await,
        layout: site.layout,
    };
    let mut broken = books.outrages.clone();
    broken.extend(left.money_goes_back_once());
    broken.extend(left.what_is_kept_is_paid());
    broken.extend(left.ledger_and_bank_agree());
    broken.extend(left.dead_orders_hold_no_stock());
    broken.extend(left.rows_move_as_they_may());
    broken.extend(left.every_effect_has_its_entry());
    broken.extend(left.steps_are_what_they_say());
    broken.extend(left.whoever_was_taken_over_moves_nothing());
    if let Some(calm) = calm {
        let now = statuses(site).await;
        let different: Vec<_> = now.iter().zip(calm).filter(|(a, b)| a != b).collect();
        // A request that was lost for good, and that a newer plan went past, is a person's to decide.
        if !different.is_empty() && !left.steps.iter().any(|s| s[4] == "UNKNOWN") {
            broken.push(format!("it does not end as undisturbed (now, then): {different:?}; {:?}", end.ends));
        }
    }
    broken
}

/// Whatever clashed, was rolled back or was broken off, the journal has no hole.
pub async fn holes(store: &Store) -> Vec<String> {
    let journal = store.verify_journal(|_| ()).await.unwrap();
    journal.misfits.iter().map(|misfit| format!("the journal does not fit: {misfit:?}")).collect()
}

impl Left<'_> {
    /// Whether something is still open about a row, so that a person or a later run goes on with it.
    fn is_open(&self, id: &str) -> bool {
        self.steps
            .iter()
            .any(|s| s[2] == id && ["PROCESSING", "ACCEPTED", "UNKNOWN"].contains(&s[4].as_str()))
    }

    /// Whether the last plan or the last apply says that something of an order's intent is left undone, and why.
    fn is_stopped(&self, order: &str) -> bool {
        let intent = self.end.plan.intents.iter().find(|i| i.orders.iter().any(|o| o.as_str() == order));
        intent.is_some_and(|intent| match intent.outcome {
            Outcome::Review => !intent.review_reasons.is_empty(),
            Outcome::Unsettled => !intent.findings.is_empty(),
            // What is in doubt on a dead order is listed, and leaves the rest of the intent as it is.
            _ if intent.findings.contains(&Finding::PaymentInDoubt) => true,
            _ => self.end.ends.iter().any(|(id, end)| *id == intent.intent_id && *end != IntentEnd::Done),
        })
    }

    /// No charge is given back twice, nor more of it than was there; one effect is asked for under one key.
    fn money_goes_back_once(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut times: BTreeMap<(&str, bool), Vec<&str>> = BTreeMap::new();
        for movement in &self.books.movements {
            let what = (movement.charge.as_str(), movement.ask == Ask::Void);
            times.entry(what).or_default().push(&movement.key);
        }
        for ((charge, void), keys) in &times {
            if keys.len() > 1 {
                let what = if *void { "let go of" } else { "given back" };
                broken.push(format!("{charge} is {what} {} times, under {keys:?}", keys.len()));
            }
        }
        for (charge, account) in &self.books.accounts {
            if account.refunded_minor > account.amount_minor {
                broken.push(format!(
                    "{} of {} is given back of {charge}",
                    account.refunded_minor, account.amount_minor
                ));
            }
        }
        let mut keys: BTreeMap<(&str, bool), BTreeSet<&str>> = BTreeMap::new();
        let forgotten = self.books.forgotten.iter().map(|(k, e)| (k, e));
        for (key, entry) in self.books.requests.iter().chain(forgotten) {
            if entry.fate != Fate::Refused {
                keys.entry((&entry.charge, entry.ask == Ask::Void)).or_default().insert(key);
            }
        }
        for ((charge, _), keys) in keys.iter().filter(|(_, keys)| keys.len() > 1) {
            broken.push(format!("{charge} is asked about under several keys: {keys:?}"));
        }
        broken
    }

    /// An order that lives as paid has its money, unless the buyer took it back.
    fn what_is_kept_is_paid(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for order in self.orders.iter().filter(|o| o[1] == "PAID" || o[1] == "TICKETED") {
            let charges =
                self.payments.iter().filter(|p| p[1] == order[0]).map(|p| &self.books.accounts[&p[0]]);
            let here: i64 = charges
                .filter(|a| matches!(a.status, PaymentStatus::Captured | PaymentStatus::Disputed))
                .map(|a| a.amount_minor - a.refunded_minor)
                .sum();
            if here < order[2].parse().unwrap() && !self.is_stopped(&order[0]) {
                broken
                    .push(format!("order {} is {}, and {here} of {} is there", order[0], order[1], order[2]));
            }
        }
        if !self.orders.iter().any(|o| o[1] == "PAID" || o[1] == "TICKETED" || self.is_stopped(&o[0])) {
            broken.push("no order is kept".to_owned());
        }
        broken
    }

    fn ledger_and_bank_agree(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for p in &self.payments {
            let (id, status, amount, refunded) = (&p[0], p[2].as_str(), &p[3], &p[4]);
            let account = &self.books.accounts[id];
            let same = match status {
                "CAPTURED" => account.status == PaymentStatus::Captured,
                "REFUNDED" => account.status == PaymentStatus::Captured && refunded == amount,
                "AUTHORIZED" => account.status == PaymentStatus::Authorized,
                "VOIDED" => account.status == PaymentStatus::Voided,
                "DISPUTED" => account.status == PaymentStatus::Disputed,
                _ => false,
            };
            let same = same && account.refunded_minor.to_string() == *refunded;
            if !same && !self.is_open(id) && !self.is_stopped(&p[1]) {
                broken.push(format!(
                    "payment {id} is {status} with {refunded} given back, the bank says {account:?}"
                ));
            }
            // Even where a person has to look: what the ledger calls settled is settled.
            let claims_too_much = match status {
                "REFUNDED" => account.refunded_minor != account.amount_minor,
                "VOIDED" => account.status != PaymentStatus::Voided,
                "CAPTURED" => account.refunded_minor > refunded.parse().unwrap() && !self.is_open(id),
                _ => false,
            };
            if claims_too_much {
                broken.push(format!(
                    "payment {id} is {status} with {refunded} given back, the bank says {account:?}"
                ));
            }
        }
        broken
    }

    fn dead_orders_hold_no_stock(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for hold in self.holds.iter().filter(|h| h[2] == "HELD" || h[2] == "CONFIRMED") {
            let order = self.orders.iter().find(|o| o[0] == hold[1]).unwrap();
            if (order[1] == "CANCELLED" || order[1] == "REFUNDED") && !self.is_stopped(&order[0]) {
                broken.push(format!("hold {} is {} and its order {}", hold[0], hold[2], order[1]));
            }
        }
        broken
    }

    /// Rows move along their status machines, and no stock comes back twice.
    fn rows_move_as_they_may(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut freed: BTreeSet<&str> = BTreeSet::new();
        for m in &self.moved {
            let ledger: Ledger = m[1].parse().unwrap();
            if !ledger.may_move(&m[3], &m[4]) {
                broken.push(format!("{} moved {} {} from {} to {}", m[0], m[1], m[2], m[3], m[4]));
            }
            if ["RELEASED", "EXPIRED"].contains(&m[4].as_str()) && !freed.insert(&m[2]) {
                broken.push(format!("the stock of {} came back twice", m[2]));
            }
        }
        broken
    }

    /// What onefold moved its journal tells, and the other way round; nothing moves money that was not sent.
    fn every_effect_has_its_entry(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let tells = |m: &Vec<String>| {
            self.journal.iter().any(|j| {
                j[1] == m[1]
                    && j[2] == m[2]
                    && j[5] == m[5]
                    && match j[0].as_str() {
                        "moved" | "settled" => j[4] == m[4],
                        "refused" => true,
                        _ => false,
                    }
            })
        };
        // Killed between the ledger's commit and the record of it, and asked about when the bank had forgotten
        // the request: it ends as one that can no longer be made, under an entry that says so.
        let forgotten = |m: &Vec<String>| {
            self.steps.iter().any(|s| {
                let is_forgotten = self.books.forgotten.iter().any(|(key, _)| *key == s[6]);
                s[1] == m[1] && s[2] == m[2] && s[3] == m[4] && s[4] == "WITHDRAWN" && is_forgotten
            })
        };
        for m in self.moved.iter().filter(|m| m[0] == "onefold" && !tells(m) && !forgotten(m)) {
            broken.push(format!("no entry tells that {} went from {} to {} ({})", m[2], m[3], m[4], m[5]));
        }
        for j in self.journal.iter().filter(|j| j[0] == "moved" || j[0] == "settled") {
            let done = |m: &&Vec<String>| m[1] == j[1] && m[2] == j[2] && m[4] == j[4] && m[5] == j[5];
            if !self.moved.iter().any(|m| done(&m)) {
                broken.push(format!(
                    "the journal tells that {} went to {} ({}), and it did not",
                    j[2], j[4], j[5]
                ));
            }
        }
        for movement in &self.books.movements {
            if !self.journal.iter().any(|j| j[0] == "sent" && j[6].contains(&movement.key)) {
                broken.push(format!(
                    "money of {} moved, and no entry says that it was asked for",
                    movement.charge
                ));
            }
        }
        broken
    }

    /// What is done was done, what was refused or given up was not, and what has ended stays so.
    fn steps_are_what_they_say(&self) -> Vec<String> {
        let mut broken = Vec::new();
        for s in &self.steps {
            let (id, to, state) = (&s[2], s[3].as_str(), s[4].as_str());
            let did = self.moved.iter().any(|m| m[1] == s[1] && m[2] == *id && m[4] == to && m[5] == s[5]);
            if state == "DONE" && !did {
                broken.push(format!("the step of {id} to {to} is DONE, and the row never moved so"));
            }
            let by_key = |m: &&super::bank::Movement| m.key == s[6];
            let asks = s[1] == "payments" && (to == "REFUNDED" || to == "VOIDED");
            let movement = self.books.movements.iter().find(by_key).filter(|_| asks);
            if asks && state == "DONE" && movement.is_none() {
                broken.push(format!("the step of {id} to {to} is DONE, and nothing moved at the bank"));
            }
            // Whoever has forgotten a key cannot say whose request it was: the row follows the charge all the same.
            let forgotten = self.books.forgotten.iter().any(|(key, _)| *key == s[6]);
            let follows = forgotten && self.payments.iter().any(|p| p[0] == *id && p[2] == to);
            if movement.is_some()
                && ["FAILED", "WITHDRAWN", "PENDING", "SKIPPED"].contains(&state)
                && !follows
            {
                broken.push(format!("the step of {id} to {to} is {state}, and its money moved"));
            }
        }
        let mut recorded: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
        for s in self.steps.iter().filter(|s| s[4] == "DONE" || s[4] == "SKIPPED") {
            *recorded.entry((&s[1], &s[2], &s[3])).or_default() += 1;
        }
        for ((ledger, id, to), recorded) in recorded {
            let moves = self.moved.iter().filter(|m| m[1] == ledger && m[2] == id && m[4] == to).count();
            if recorded > moves {
                broken.push(format!(
                    "{recorded} steps of {id} to {to} are done, and it moved there {moves} times"
                ));
            }
        }
        for c in &self.changed {
            if ["DONE", "SKIPPED", "FAILED", "WITHDRAWN"].contains(&c[1].as_str()) {
                broken.push(format!("step {} had ended as {}, and became {}", &c[0][..8], c[1], c[2]));
            }
        }
        broken
    }

    /// Whoever's freeze was taken over begins no step and moves no row: where the ledgers lie beside the
    /// journal, what is claimed is moved at once.
    fn whoever_was_taken_over_moves_nothing(&self) -> Vec<String> {
        let mut broken = Vec::new();
        let mut holder = "op";
        for j in &self.journal {
            match j[0].as_str() {
                "took-over" => holder = &j[7],
                "moved" if self.layout == Layout::Together && j[7] != holder => {
                    let second_leg = j[4] == "REFUNDED" || j[4] == "VOIDED";
                    if j[1] != "payments" || !second_leg {
                        broken.push(format!(
                            "{} moved {} to {}, though {holder} has taken over",
                            j[7], j[2], j[4]
                        ));
                    }
                }
                _ => {}
            }
        }
        broken
    }
}
