//! Dossiers to report: the night of the incident, and ledgers whose ids mean harm.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use onefold::core::dossier::pseudonyms::Pseudonyms;
use onefold::core::dossier::timeline::{Mark, Timeline};
use onefold::core::dossier::{ChargeFacts, Dossier, HoldFacts, StepEnd};
use onefold::core::freeze::{Freeze, FreezeMode, FreezeState};
use onefold::core::ids::RowId;
use onefold::core::ledger::Ledgers;
use onefold::core::plan::{Plan, make};
use onefold::core::sheet::Cell;
use onefold::core::time::{Span, Timestamp};
use onefold::files::{LedgerFiles, ReadOptions, read};
use onefold::report::export::{Export, Target, Written};

use crate::common::Options;
use crate::common::book::{Book, at};

/// What is reported, and what it was made of.
pub struct Scene {
    pub ledgers: Ledgers,
    pub plan: Plan,
    pub freeze: Freeze,
}

impl Scene {
    /// The night of the fixture.
    pub fn incident() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/incident-2014");
        let files = LedgerFiles::in_dir(&folder).unwrap();
        let (ledgers, _) = read(&files, &ReadOptions::default(), &mut |_, _, _| ()).unwrap();
        let options = Options::from_text(&fs::read_to_string(folder.join("options.txt")).unwrap());
        let evidence = options.evidence(&ledgers);
        let decided = make(&ledgers, &options.scope, &options.policy, options.as_of, &evidence).unwrap();
        Self::of(ledgers, decided.into_plan("PL-0123456789".into(), options.as_of, Some("F-1".into())))
    }

    pub fn of_book(book: &Book) -> Self {
        Self::of(book.ledgers.clone(), book.plan())
    }

    fn of(ledgers: Ledgers, plan: Plan) -> Self {
        let freeze = Freeze {
            freeze_id: "F-1".into(),
            token: 7,
            owner: "ada@desk".into(),
            reason: "retries double the orders".into(),
            scope: plan.scope.clone(),
            effects: Vec::new(),
            topics: Default::default(),
            mode: FreezeMode::Enforced,
            narrowed_to: None,
            state: FreezeState::Live,
            frozen_at: plan.as_of,
            lease_until: plan.as_of.plus(Span::from_mins(30)),
        };
        Self { ledgers, plan, freeze }
    }

    /// Before anything is carried out.
    pub fn before(&self) -> Dossier<'_> {
        let captured = ["CAPTURED", "REFUNDING", "REFUNDED", "DISPUTED", "CHARGED_BACK"];
        let mut timeline = Timeline::default();
        for order in self.ledgers.orders.iter().filter(|o| in_scope(&self.plan, o.show_id.as_str())) {
            let source = order.source.clone().unwrap_or_default();
            timeline.orders.entry(source).or_default().add(order.created_at, 1);
        }
        for payment in self.ledgers.payments.iter().filter(|p| in_scope(&self.plan, p.show_id.as_str())) {
            if captured.contains(&payment.status.as_str()) {
                timeline.captures.add(payment.captured_at(), 1);
            }
        }
        timeline.marks.push(Mark { what: "freeze", at: self.freeze.frozen_at });
        let charges = self.ledgers.payments.iter().map(|p| {
            let facts = ChargeFacts {
                order_id: p.order_id.clone(),
                provider: p.provider.clone(),
                provider_txn_id: p.provider_txn_id.clone(),
            };
            ((p.tenant_id.clone(), RowId::from(&p.payment_id)), facts)
        });
        let holds =
            self.ledgers.inventory.iter().map(|h| {
                ((h.tenant_id.clone(), RowId::from(&h.hold_id)), HoldFacts::new(h, self.plan.as_of))
            });
        Dossier {
            state: "OPEN",
            made_by: "ada@desk",
            freeze: Some(&self.freeze),
            read_at: self.plan.as_of.plus(Span::from_mins(12)),
            charges: charges.collect(),
            holds: holds.collect(),
            timeline,
            ..Dossier::of_plan(&self.plan)
        }
    }

    /// When every step is done.
    pub fn after(&self) -> Dossier<'_> {
        let mut dossier = self.before();
        let begun = self.plan.as_of.plus(Span::from_mins(4));
        let steps = self.plan.intents.iter().flat_map(|i| &i.steps);
        dossier.ends = steps
            .enumerate()
            .map(|(i, step)| {
                let at = begun.plus(Span::from_micros(37_000 * i as i64));
                let provider_ref = step.is_refund().then(|| format!("re_{}", &step.step_key[..8]));
                let note = None;
                (step.step_key.clone(), StepEnd { state: "DONE", is_done: true, at, provider_ref, note })
            })
            .collect::<HashMap<_, _>>();
        dossier.state = "ENDED";
        let (first, last) = dossier.carried_out().unwrap();
        dossier.timeline.marks.push(Mark { what: "apply", at: first });
        dossier.timeline.marks.push(Mark { what: "last step", at: last });
        dossier
    }

    /// Knows everybody in the ledgers.
    pub fn know_all(&self, pseudonyms: &mut Pseudonyms) {
        for order in &self.ledgers.orders {
            pseudonyms.know_user(order.user_id.as_str());
            order.session_id.iter().for_each(|id| pseudonyms.know_session(id.as_str()));
            order.trace_id.iter().for_each(|id| pseudonyms.know_trace(id));
        }
    }
}

fn in_scope(plan: &Plan, show: &str) -> bool {
    plan.scope.shows.is_empty() || plan.scope.shows.iter().any(|s| s.as_str() == show)
}

/// Ids that mean harm to whatever reads them.
pub const HOSTILE: [&str; 12] = [
    "=HYPERLINK(\"http://x.example\",\"x\")",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "\"quoted\",\"id\"",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\u{202e}gnp.exe",
    "订单🎟️",
    "007",
];

/// A doubled purchase for each hostile id, which is user, session, order, payment and hold of it.
pub fn hostile() -> Scene {
    let mut book = Book::new();
    for (i, id) in HOSTILE.iter().enumerate() {
        for (n, suffix) in ["", "#2"].iter().enumerate() {
            let order = format!("{id}{suffix}");
            book.bought(&order, 10_000 * i as i64 + 5 * n as i64);
            let rows = &mut book.ledgers;
            let (o, p, h) = (
                rows.orders.last_mut().unwrap(),
                rows.payments.last_mut().unwrap(),
                rows.inventory.last_mut().unwrap(),
            );
            (o.user_id, p.user_id, h.user_id) = ((*id).into(), (*id).into(), (*id).into());
            (o.session_id, p.session_id, h.session_id) =
                (Some((*id).into()), Some((*id).into()), Some((*id).into()));
            (p.payment_id, h.hold_id) = (order.as_str().into(), order.as_str().into());
            p.provider_txn_id = Some(order.clone());
            o.source = Some((*id).to_owned());
        }
    }
    let mut scene = Scene::of_book(&book);
    scene.freeze.reason = HOSTILE.join(" ");
    scene
}

/// Entries of a journal, one for each note.
pub fn journal(notes: &[&'static str]) -> Vec<Vec<Cell<'static>>> {
    let row = |(i, note): (usize, &&'static str)| {
        let text = |text: &'static str| Cell::Text(text.into());
        vec![
            Cell::Number(i as i64 + 1),
            Cell::Time(at(i as i64)),
            text("ada@desk"),
            text("moved"),
            text("t"),
            text("orders"),
            text("O-1"),
            text("PAID"),
            text("REFUNDING"),
            Cell::None,
            Cell::None,
            text("F-1"),
            text("PL-0123456789"),
            text("I-1"),
            text(note),
        ]
    };
    notes.iter().enumerate().map(row).collect()
}

/// A file to write to.
pub fn target(path: &Path) -> Target {
    Target::new(Some(path), None).unwrap()
}

/// Adds entries, and ends.
pub fn finish(mut export: impl Export, dossier: &Dossier<'_>, entries: &[Vec<Cell<'_>>]) -> Written {
    entries.iter().for_each(|entry| export.journal(entry).unwrap());
    Box::new(export).end(dossier).unwrap()
}

pub fn temporary() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_owned();
    (dir, path)
}

/// An instant of the dossiers.
#[allow(dead_code)]
pub fn instant(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}
