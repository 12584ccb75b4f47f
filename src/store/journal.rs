//! The append-only journal: who did what to which row, and why. Each entry is written in the same
//! transaction as the change that it tells of, wherever both share a database.

use std::collections::BTreeSet;

use serde::Serialize;

use super::read::batches;
use super::rows::{LedgerRow, Reader};
use super::sql::Values;
use super::{Connection, Database, Queries, Store, Transaction};
use crate::core::chain::{Content, Link};
use crate::core::evidence::Evidence;
use crate::core::ids::*;
use crate::core::ledger::Ledgers;
use crate::core::status::{Ledger, status_type};
use crate::core::time::Timestamp;
use crate::error::{Error, Result};

status_type!(Event {
    Froze = "froze",
    Renewed = "renewed",
    TookOver = "took-over",
    Lapsed = "lapsed",
    Narrowed = "narrowed",
    Thawed = "thawed",
    Planned = "planned",
    Superseded = "superseded",
    /// Somebody gave his word for a plan.
    Approved = "approved",
    /// Which plans need somebody's word was said.
    RuleSet = "approval-rule-set",
    /// The first step of a plan may be carried out from now on.
    Begun = "begun",
    Applied = "applied",
    /// A row was moved by a step.
    Moved = "moved",
    /// A step found its row where it was to go.
    AlreadySo = "already-so",
    /// A step found its row, or an intent its rows, moved elsewhere.
    Conflict = "conflict",
    /// A request went out to the provider.
    Sent = "sent",
    Accepted = "accepted",
    /// The provider refused for good.
    Refused = "refused",
    /// A request did not leave, or its answer did not arrive.
    Unknown = "unknown",
    /// A request that we had prepared and never sent was given up.
    Withdrawn = "withdrawn",
    /// The provider was asked about a charge, or about all charges of an order.
    Asked = "asked",
    /// A row was moved to what the provider said.
    Settled = "settled",
    /// A person said how a request ended.
    SettledByHand = "settled-by-hand",
    KeepChosen = "keep-chosen",
    KeepWithdrawn = "keep-withdrawn",
    Requeued = "requeued",
    /// An idempotency key was taken, for the first time or for another try.
    KeyTaken = "key-taken",
    /// A key whose owner's lease was over was taken by another.
    KeyTakenOver = "key-taken-over",
    /// What was begun under a key has ended, or was lost sight of.
    KeyFinished = "key-finished",
    /// A query or a person said what came of a key.
    KeySettled = "key-settled",
    /// For how long what is kept of idempotency keys was said.
    RetentionSet = "retention-set",
    /// Records of idempotency keys moved down the tiers.
    KeysMoved = "keys-moved",
    Imported = "imported",
    /// The last entry of a run's chain.
    Ended = "ended",
});

/// One entry. What does not apply is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Growing; 0 until it is written.
    pub seq: i64,
    pub at: Option<Timestamp>,
    pub actor: String,
    pub event: String,
    pub freeze_id: Option<String>,
    pub plan_id: Option<String>,
    pub intent_id: Option<String>,
    pub ledger: Option<Ledger>,
    pub tenant_id: Option<TenantId>,
    pub row_id: Option<RowId>,
    pub from: Option<String>,
    pub to: Option<String>,
    /// In the minor unit of `currency`.
    pub amount_minor: Option<i64>,
    pub currency: Option<String>,
    /// Of the row, after a move or when it was asked about.
    pub version: Option<Version>,
    pub note: Option<String>,
}

impl Entry {
    pub fn new(event: Event, actor: &str, at: Timestamp) -> Self {
        Self { event: event.to_string(), actor: actor.to_owned(), at: Some(at), ..Self::default() }
    }

    #[must_use]
    pub fn freeze(mut self, freeze_id: &str) -> Self {
        self.freeze_id = Some(freeze_id.to_owned());
        self
    }

    #[must_use]
    pub fn plan(mut self, plan_id: &str) -> Self {
        self.plan_id = Some(plan_id.to_owned());
        self
    }

    #[must_use]
    pub fn row(mut self, ledger: Ledger, tenant_id: &TenantId, id: impl Into<RowId>) -> Self {
        (self.ledger, self.tenant_id, self.row_id) = (Some(ledger), Some(tenant_id.clone()), Some(id.into()));
        self
    }

    /// About an idempotency key.
    #[must_use]
    pub fn key(mut self, tenant_id: &TenantId, key: &IdempotencyKey) -> Self {
        (self.tenant_id, self.row_id) = (Some(tenant_id.clone()), Some(RowId::from(key.as_str())));
        self
    }

    #[must_use]
    pub fn moved(mut self, from: &str, to: &str) -> Self {
        (self.from, self.to) = (Some(from.to_owned()), Some(to.to_owned()));
        self
    }

    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

impl Entry {
    /// What it says, in the order of `core/chain.rs`.
    pub(super) fn content(&self) -> Content {
        let text = |text: Option<&str>| text.map(str::to_owned);
        vec![
            ("at_us", self.at.map(|at| at.micros().to_string())),
            ("actor", text(Some(&self.actor))),
            ("event", text(Some(&self.event))),
            ("freeze_id", self.freeze_id.clone()),
            ("plan_id", self.plan_id.clone()),
            ("intent_id", self.intent_id.clone()),
            ("ledger", text(self.ledger.map(Ledger::as_str))),
            ("tenant_id", text(self.tenant_id.as_ref().map(TenantId::as_str))),
            ("row_id", text(self.row_id.as_ref().map(RowId::as_str))),
            ("from_status", self.from.clone()),
            ("to_status", self.to.clone()),
            ("amount_minor", self.amount_minor.map(|minor| minor.to_string())),
            ("currency", self.currency.clone()),
            ("version", text(self.version.as_ref().map(Version::as_str))),
            ("note", self.note.clone()),
        ]
    }

    /// Its values in the order of journal/append.sql.
    fn values(&self, content: Content, link: &Link) -> Values {
        let values = Values::new()
            .bind("chain", link.chain.as_str())
            .bind("position", link.position)
            .bind("previous_hash", link.previous_hash.as_str())
            .bind("hash", link.hash.as_str());
        content.into_iter().fold(values, |values, (name, text)| match name {
            "at_us" => values.bind(name, self.at.map(Timestamp::micros)),
            "amount_minor" => values.bind(name, self.amount_minor),
            _ => values.bind(name, text),
        })
    }
}

/// Which entries to read; what is `None` does not narrow.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Entries of this order and of every intent that it was in.
    pub order: Option<String>,
    pub plan: Option<String>,
    pub tenant: Option<String>,
    /// Intents that the order is in, beside those that the journal has rows of.
    pub intents: Vec<String>,
}

impl Store {
    /// Writes an entry by itself.
    pub async fn append(&self, entry: &Entry) -> Result<()> {
        self.journal().transaction(async |tx| self.append_on(tx, entry).await).await
    }

    /// Writes an entry in a transaction of the journal's database, beside the change it tells of: the next
    /// of the chain that the transaction has to itself.
    ///
    /// # Errors
    /// A clash, where another run has ended that chain: the transaction, run again, begins a new one.
    pub async fn append_on(&self, on: &mut Transaction, entry: &Entry) -> Result<()> {
        self.append_all_on(on, std::slice::from_ref(entry)).await
    }

    /// As [`Store::append_on`], of many entries one after the other.
    pub async fn append_all_on(&self, on: &mut Transaction, entries: &[Entry]) -> Result<()> {
        let mut linked = Vec::with_capacity(entries.len());
        for entry in entries {
            let link = on.next_link(&entry.content());
            on.written(link.clone());
            linked.push((entry, link));
        }
        if self.journal().write_entries(on, &linked).await? {
            return Ok(());
        }
        let chain = linked.first().map_or("", |(_, link)| &link.chain);
        Err(Error::clash(format!("the journal's chain {chain} was ended meanwhile")))
    }

    /// The journal's entries in the order in which they were written.
    pub async fn history(&self, search: &Search) -> Result<Vec<Entry>> {
        let values = Values::new()
            .bind_when("order_id", search.order.as_deref())
            // No intent has an empty name, and no list may be empty.
            .bind("intents", search.intents.iter().cloned().chain([String::new()]).collect::<Vec<_>>())
            .bind_when("plan_id", search.plan.as_deref())
            .bind_when("tenant_id", search.tenant.as_deref());
        let journal = self.journal();
        let statement = journal.statement(&self.queries, "journal/search", &values)?;
        let mut connection = journal.connection().await?;
        journal.fetch(&mut connection, &statement).await?.iter().map(decode).collect()
    }

    /// What the journal knows of the ledgers' rows, for the core's rules.
    pub async fn evidence(&self) -> Result<Evidence> {
        self.evidence_with(&Values::new()).await
    }

    /// As [`Store::evidence`], without the steps of one plan: what it was made by is not changed by what it does.
    pub async fn evidence_beside(&self, plan_id: &str) -> Result<Evidence> {
        self.evidence_with(&Values::new().bind("but_plan", plan_id)).await
    }

    /// As [`Store::evidence`], of these rows at least. The steps that all plans have ever ended are read only where they
    /// are not more than the rows.
    pub async fn evidence_of(&self, rows: &Ledgers) -> Result<Evidence> {
        let journal = self.journal();
        let mut connection = journal.connection().await?;
        let mut evidence = self.evidence_entries(&mut connection).await?;
        let most = i64::try_from(rows.len()).unwrap_or(i64::MAX).saturating_add(1);
        let mut ended = Vec::new();
        let values = Values::new().bind("most", most);
        self.each_ended_step(&mut connection, "steps/ended", &values, |step| ended.push(step)).await?;
        if ended.len() <= rows.len() {
            ended.into_iter().for_each(|step| step.note(&mut evidence));
            return Ok(evidence);
        }
        drop(ended);
        fn ids<T: LedgerRow>(rows: &[T]) -> impl Iterator<Item = (&TenantId, String)> {
            rows.iter().map(|row| (row.tenant_id(), row.row_id().to_string()))
        }
        // Each once: rows of two ledgers may have one id.
        let orders_and_payments = ids(&rows.orders).chain(ids(&rows.payments));
        let ids: BTreeSet<_> =
            orders_and_payments.chain(ids(&rows.inventory)).chain(ids(&rows.messages)).collect();
        for (tenant_id, row_ids) in batches(ids) {
            let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("row_ids", row_ids);
            self.each_ended_step(&mut connection, "steps/any_of_rows", &values, |step| {
                step.note(&mut evidence)
            })
            .await?;
        }
        Ok(evidence)
    }

    async fn evidence_with(&self, values: &Values) -> Result<Evidence> {
        let mut connection = self.journal().connection().await?;
        let mut evidence = self.evidence_entries(&mut connection).await?;
        self.each_ended_step(&mut connection, "steps/ended", values, |step| step.note(&mut evidence)).await?;
        Ok(evidence)
    }

    /// What its entries tell besides steps.
    async fn evidence_entries(&self, on: &mut Connection) -> Result<Evidence> {
        let mut evidence = Evidence::default();
        let journal = self.journal();
        let statement = journal.statement(&self.queries, "journal/evidence", &Values::new())?;
        for row in journal.fetch(on, &statement).await? {
            note_entry(&mut evidence, decode(&row)?);
        }
        Ok(evidence)
    }
}

impl Database {
    /// Whether the entries could be written; false where a place in the chain is taken.
    pub(super) async fn write_entries(
        &self,
        on: &mut Connection,
        entries: &[(&Entry, Link)],
    ) -> Result<bool> {
        let values = |(entry, link): &(&Entry, Link)| entry.values(entry.content(), link);
        self.insert_rows(on, &Queries::default(), "journal/append", entries, values).await
    }
}

fn note_entry(evidence: &mut Evidence, entry: Entry) {
    let (Some(tenant_id), Some(row_id), Ok(event)) =
        (entry.tenant_id, entry.row_id, entry.event.parse::<Event>())
    else {
        return;
    };
    let payment = || (tenant_id.clone(), PaymentId::from(row_id.as_str()));
    let order = || (tenant_id.clone(), OrderId::from(row_id.as_str()));
    match (event, entry.ledger) {
        (Event::Asked, Some(Ledger::Payments)) => {
            if let Some(at) = entry.at {
                evidence.asked_charges.insert(payment(), at);
            }
        }
        (Event::Asked, Some(Ledger::Orders)) => {
            if let Some(version) = entry.version {
                evidence.asked_orders.insert(order(), version);
            }
        }
        (Event::Refused, Some(Ledger::Payments)) => {
            evidence.refused_refunds.insert(payment());
        }
        (Event::KeepChosen, _) => {
            evidence.keeps.insert(order(), entry.note.unwrap_or_default());
        }
        (Event::KeepWithdrawn, _) => {
            evidence.keeps.remove(&order());
        }
        _ => {}
    }
}

pub(super) fn decode(row: &sqlx::any::AnyRow) -> Result<Entry> {
    let r = Reader::new(row, "journal");
    Ok(Entry {
        seq: r.int("seq")?,
        at: r.time_or_null("at_us")?,
        actor: r.needed("actor")?,
        event: r.needed("event")?,
        freeze_id: r.text("freeze_id")?,
        plan_id: r.text("plan_id")?,
        intent_id: r.text("intent_id")?,
        ledger: r.text("ledger")?.map(|_| r.parsed("ledger")).transpose()?,
        tenant_id: r.id_or_null("tenant_id")?,
        row_id: r.id_or_null("row_id")?,
        from: r.text("from_status")?,
        to: r.text("to_status")?,
        amount_minor: r.int_or_null("amount_minor")?,
        currency: r.text("currency")?,
        version: r.id_or_null("version")?,
        note: r.text("note")?,
    })
}
