//! Writes small ledgers row by row, plans them, and carries plans out in memory.

use onefold::core::evidence::{Effect, Evidence};
use onefold::core::ids::*;
use onefold::core::ledger::*;
use onefold::core::plan::*;
use onefold::core::policy::Policy;
use onefold::core::recheck::OwnMove;
use onefold::core::scope::Scope;
use onefold::core::status::Ledger;
use onefold::core::time::{Span, Timestamp};

/// The instant `seconds` after that at which the tests' ledgers begin.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_790_000_000_000_000).plus(Span::from_secs(seconds))
}

/// What a test does to a ledger.
pub type Change = fn(&mut Book);

/// Ledgers of one tenant, user, show and session, unless a test says otherwise, and what to plan
/// them with. Orders cost 1000 and ask for one piece; `as_of` is an hour in.
pub struct Book {
    pub ledgers: Ledgers,
    pub scope: Scope,
    pub policy: Policy,
    pub evidence: Evidence,
    pub as_of: Timestamp,
}

impl Book {
    pub fn new() -> Self {
        Self {
            ledgers: Ledgers::default(),
            scope: Scope::default(),
            policy: Policy::default(),
            evidence: Evidence::default(),
            as_of: at(3600),
        }
    }

    pub fn order(&mut self, id: &str, seconds: i64, status: &str) -> &mut Order {
        self.ledgers.orders.push(Order {
            order_id: id.into(),
            tenant_id: "t".into(),
            user_id: "u".into(),
            show_id: "show".into(),
            session_id: Some("s".into()),
            idempotency_key: None,
            item: None,
            quantity: 1,
            amount_minor: 1000,
            currency: "CNY".parse().unwrap(),
            status: status.parse().unwrap(),
            source: None,
            trace_id: None,
            created_at: at(seconds),
            version: "1".into(),
            shard: 0,
        });
        self.ledgers.orders.last_mut().unwrap()
    }

    /// A payment of 1000 on an order, captured (if its status says so) at `seconds`.
    pub fn payment(&mut self, id: &str, order: &str, seconds: i64, status: &str) -> &mut Payment {
        self.ledgers.payments.push(Payment {
            payment_id: id.into(),
            tenant_id: "t".into(),
            order_id: Some(order.into()),
            user_id: "u".into(),
            show_id: "show".into(),
            session_id: Some("s".into()),
            amount_minor: 1000,
            refunded_minor: 0,
            currency: "CNY".parse().unwrap(),
            provider: "pay".into(),
            provider_txn_id: None,
            status: status.parse().unwrap(),
            created_at: at(seconds),
            captured_at: None,
            version: "1".into(),
            shard: 0,
        });
        self.ledgers.payments.last_mut().unwrap()
    }

    pub fn hold(&mut self, id: &str, order: &str, status: &str) -> &mut Hold {
        self.ledgers.inventory.push(Hold {
            hold_id: id.into(),
            tenant_id: "t".into(),
            order_id: Some(order.into()),
            user_id: "u".into(),
            show_id: "show".into(),
            session_id: Some("s".into()),
            item: None,
            quantity: 1,
            status: status.parse().unwrap(),
            created_at: at(0),
            expires_at: None,
            version: "1".into(),
            shard: 0,
        });
        self.ledgers.inventory.last_mut().unwrap()
    }

    pub fn message(&mut self, id: &str, order: &str, topic: &str, status: &str) -> &mut Message {
        self.ledgers.messages.push(Message {
            message_id: id.into(),
            tenant_id: "t".into(),
            message_key: None,
            topic: topic.into(),
            order_id: Some(order.into()),
            user_id: Some("u".into()),
            show_id: Some("show".into()),
            session_id: Some("s".into()),
            status: status.parse().unwrap(),
            attempts: 0,
            trace_id: None,
            created_at: at(1),
            version: "1".into(),
            shard: 0,
        });
        self.ledgers.messages.last_mut().unwrap()
    }

    /// An order that is paid in full and backed: `P-id` captured two seconds later, `H-id` confirmed.
    pub fn bought(&mut self, id: &str, seconds: i64) {
        self.order(id, seconds, "PAID");
        self.payment(&format!("P-{id}"), id, seconds + 2, "CAPTURED");
        self.hold(&format!("H-{id}"), id, "CONFIRMED");
    }

    /// An order that waits for its payment and is backed: `H-id` is held.
    pub fn reserved(&mut self, id: &str, seconds: i64) {
        self.order(id, seconds, "PENDING_PAYMENT");
        self.hold(&format!("H-{id}"), id, "HELD");
    }

    pub fn find_order(&mut self, id: &str) -> &mut Order {
        self.ledgers.orders.iter_mut().find(|o| o.order_id.as_str() == id).unwrap()
    }

    pub fn find_payment(&mut self, id: &str) -> &mut Payment {
        self.ledgers.payments.iter_mut().find(|p| p.payment_id.as_str() == id).unwrap()
    }

    pub fn find_hold(&mut self, id: &str) -> &mut Hold {
        self.ledgers.inventory.iter_mut().find(|h| h.hold_id.as_str() == id).unwrap()
    }

    pub fn keep(&mut self, order: &str) {
        self.evidence.keeps.insert(("t".into(), order.into()), "a test says so".to_owned());
    }

    pub fn make(&self) -> Result<Decided, PlanError> {
        make(&self.ledgers, &self.scope, &self.policy, self.as_of, &self.evidence)
    }

    pub fn plan(&self) -> Plan {
        self.make().unwrap().into_plan("plan-1".to_owned(), self.as_of, None)
    }

    /// The orders of each intent, in the plan's order.
    pub fn groups(&self) -> Vec<Vec<String>> {
        let ids = |i: &PlannedIntent| i.orders.iter().map(ToString::to_string).collect();
        self.plan().intents.iter().map(ids).collect()
    }

    /// The only intent.
    pub fn intent(&self) -> PlannedIntent {
        let mut intents = self.plan().intents;
        assert_eq!(intents.len(), 1, "{intents:?}");
        intents.remove(0)
    }

    /// The intent of this order.
    pub fn intent_of(&self, order: &str) -> PlannedIntent {
        let of = |i: &PlannedIntent| i.orders.iter().any(|o| o.as_str() == order);
        self.plan().intents.into_iter().find(of).unwrap_or_else(|| panic!("no intent of {order}"))
    }

    /// The intent that this orphan stands in.
    pub fn intent_of_orphan(&self, id: &str) -> PlannedIntent {
        let of = |i: &PlannedIntent| i.orphans.iter().any(|(_, o)| o.as_str() == id);
        self.plan().intents.into_iter().find(of).unwrap_or_else(|| panic!("no intent of {id}"))
    }
}

/// Steps as a person writes them: `payments P-B CAPTURED>REFUNDING 1000`.
pub fn steps(intent: &PlannedIntent) -> Vec<String> {
    let text = |s: &Step| {
        let amount = s.amount_minor.map_or(String::new(), |a| format!(" {a}"));
        format!("{} {} {}>{}{amount}", s.ledger, s.id, s.from, s.to)
    };
    intent.steps.iter().map(text).collect()
}

/// Whether the findings of the intent include this one.
pub fn has(intent: &PlannedIntent, finding: Finding) -> bool {
    intent.findings.contains(&finding)
}

/// Outcome, kept order and row of the table: `KEEP O-1 3`.
pub fn verdict(intent: &PlannedIntent) -> String {
    let keep = intent.keep.as_ref().map_or("-", OrderId::as_str);
    format!("{} {keep} {}", intent.outcome, intent.decided_by)
}

/// What an intent is in review for, and by which row.
pub fn review(intent: &PlannedIntent) -> (u8, Vec<Finding>) {
    assert_eq!(intent.outcome, Outcome::Review, "{intent:?}");
    assert!(intent.keep.is_none() && intent.steps.is_empty(), "{intent:?}");
    (intent.decided_by, intent.review_reasons.clone())
}

/// Carries out steps as compare-and-sets on the ledgers; each must find its row as it expects.
/// The version of a moved row gets a `'` at its end. The journal's side goes to `evidence`.
pub fn apply(
    ledgers: &mut Ledgers,
    tenant_id: &TenantId,
    steps: &[Step],
    evidence: &mut Evidence,
) -> Vec<OwnMove> {
    steps.iter().map(|step| apply_step(ledgers, tenant_id, step, evidence)).collect()
}

fn apply_step(ledgers: &mut Ledgers, tenant_id: &TenantId, step: &Step, evidence: &mut Evidence) -> OwnMove {
    let mut moved = OwnMove {
        ledger: step.ledger,
        tenant_id: tenant_id.clone(),
        id: step.id.clone(),
        from_status: step.from.clone(),
        version_before: "".into(),
        refunded_before_minor: None,
        to_status: step.to.clone(),
        version_after: "".into(),
        refunded_after_minor: None,
    };
    macro_rules! compare_and_set {
        ($rows:expr, $id:ident) => {{
            let row = $rows
                .iter_mut()
                .find(|row| row.tenant_id == *tenant_id && row.$id.as_str() == step.id.as_str())
                .unwrap();
            assert_eq!(row.status.as_str(), step.from, "{step:?}");
            if let Some(version) = &step.version {
                assert_eq!(row.version, *version, "{step:?}");
            }
            row.status = step.to.parse().unwrap();
            moved.version_before = row.version.clone();
            row.version = format!("{}'", row.version).into();
            moved.version_after = row.version.clone();
            row
        }};
    }
    match step.ledger {
        Ledger::Orders => drop(compare_and_set!(ledgers.orders, order_id)),
        Ledger::Inventory => drop(compare_and_set!(ledgers.inventory, hold_id)),
        Ledger::Messages => drop(compare_and_set!(ledgers.messages, message_id)),
        Ledger::Payments => {
            let row = compare_and_set!(ledgers.payments, payment_id);
            moved.refunded_before_minor = Some(row.refunded_minor);
            if step.to == "REFUNDED" {
                let amount = step.amount_minor.unwrap();
                row.refunded_minor += amount;
                let id = (row.tenant_id.clone(), row.payment_id.clone());
                *evidence.refunded_by_us.entry(id).or_default() += amount;
            }
            moved.refunded_after_minor = Some(row.refunded_minor);
        }
    }
    let effect = Effect {
        ledger: step.ledger,
        tenant_id: tenant_id.clone(),
        id: step.id.clone(),
        from: step.from.clone(),
        to: step.to.clone(),
    };
    *evidence.occurrences.entry(effect).or_default() += 1;
    moved
}
