//! What is kept of idempotency keys, and for how long: the policy, what the tiers take, and the moves down
//! them. A record moves only as it was seen: by its version, its tier and when it was last asked for.

use serde::Serialize;

use super::enforce::pieces;
use super::idempotency::{Holder, decode, exit_code, named};
use super::journal::{Entry, Event};
use super::rows::Reader;
use super::sql::{Statement, Values};
use super::{Connection, Store};
use crate::core::hash::sha256;
use crate::core::idempotency::{KeyRecord, KeyState, Retention};
use crate::core::ids::{IdempotencyKey, RowId, TenantId};
use crate::core::retention::{Aging, RetentionPolicy, key_sha256};
use crate::core::status::Ledger;
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Result};

/// The policy that is set, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetPolicy {
    #[serde(flatten)]
    pub policy: RetentionPolicy,
    /// Grows with every change.
    pub version: i64,
    pub set_by: String,
    /// By the database's clock.
    pub set_at: Timestamp,
    pub because: Option<String>,
}

/// A record that has ended, as far as moving it asks for.
#[derive(Clone, Debug)]
pub struct AgedKey {
    pub tenant_id: TenantId,
    pub key: IdempotencyKey,
    pub aging: Aging,
    digest: String,
    version: i64,
    exit_code: Option<u8>,
    result_ref: Option<String>,
    first_seen: Timestamp,
    has_result: bool,
    /// The database's time when it was read.
    pub now: Timestamp,
}

/// What came of moving one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveEnd {
    Moved,
    /// It was not as it was seen.
    Meanwhile,
    /// Its key is in the archive already.
    ArchivedBefore,
}

/// Records of one tier and state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    pub tier: Retention,
    pub state: KeyState,
    pub records: u64,
    /// Of those that are PROCESSING, how many are held by nobody any more.
    pub lapsed: u64,
    pub bytes: u64,
}

/// What the archive takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredArchive {
    pub records: u64,
    /// How many were not seen for longer than the archive's window.
    pub past: u64,
    pub bytes: u64,
}

/// A row of a step that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedRow {
    pub plan_id: String,
    pub intent_id: String,
    pub tenant_id: TenantId,
    pub ledger: Ledger,
    pub row_id: RowId,
}

/// What keeps the keys that it names where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenWork {
    /// The plans that may still be applied.
    pub plans: Vec<String>,
    /// The rows of the steps that have not ended.
    pub unfinished: Vec<UnfinishedRow>,
}

impl OpenWork {
    /// Whether nothing is open later but what this tells of: an open plan tells of all its steps.
    fn tells_of(&self, later: &Self) -> bool {
        later.plans.iter().all(|plan| self.plans.contains(plan))
            && later
                .unfinished
                .iter()
                .all(|row| self.plans.contains(&row.plan_id) || self.unfinished.contains(row))
    }
}

impl Store {
    /// The policy that is set, if one is.
    pub async fn retention(&self) -> Result<Option<SetPolicy>> {
        let statement = self.policy_statement("retention/policy", &Values::new())?;
        let mut connection = self.journal().connection().await?;
        let rows = self.journal().fetch(&mut connection, &statement).await?;
        rows.first().map(decode_policy).transpose()
    }

    /// Sets a policy where the one that was seen, or none, still is; whether it was.
    pub async fn set_retention(
        &self,
        holder: &Holder,
        seen: Option<&SetPolicy>,
        policy: &RetentionPolicy,
        because: Option<&str>,
    ) -> Result<bool> {
        let values = Values::new()
            .bind("client_retry_us", policy.client_retry.micros())
            .bind("queue_us", policy.queue.micros())
            .bind("longest_replay_us", policy.longest_replay.micros())
            .bind("replay_us", policy.replay.micros())
            .bind("dispute_us", policy.dispute.micros())
            .bind("archive_us", policy.archive.micros())
            .bind("set_by", holder.actor.as_str())
            .bind("because", because);
        let mut entry = Entry::new(Event::RetentionSet, &holder.actor, (holder.clock)());
        entry.from = seen.map(|seen| in_words(&seen.policy));
        entry.to = Some(in_words(policy));
        entry.note = because.map(str::to_owned);
        let journal = self.journal();
        if let Some(seen) = seen {
            let statement = self.policy_statement("retention/set", &values.bind("version", seen.version))?;
            return journal
                .transaction(async |tx| {
                    let changed = journal.execute(tx, &statement).await? == 1;
                    if changed {
                        self.append_on(tx, &entry).await?;
                    }
                    Ok(changed)
                })
                .await;
        }
        let statement = self.policy_statement("retention/set_first", &values)?;
        let mut tx = journal.begin().await?;
        if !journal.insert(&mut tx, &statement).await? {
            tx.rollback().await.map_err(|e| journal.failed(&e))?;
            return Ok(false);
        }
        self.append_on(&mut tx, &entry).await?;
        journal.commit(tx).await?;
        Ok(true)
    }

    /// The next records of a tier that have ended and are older than a window, after the one that is named.
    pub async fn aged_keys(
        &self,
        tier: Retention,
        window: Span,
        after: Option<&AgedKey>,
        batch: i64,
    ) -> Result<Vec<AgedKey>> {
        let values = Values::new()
            .bind("retention", tier.as_str())
            .bind("window_us", window.micros())
            .bind("after_us", after.map_or(i64::MIN, |key| key.aging.last_seen.micros()))
            .bind("after_tenant", after.map_or("", |key| key.tenant_id.as_str()))
            .bind("after_key", after.map_or("", |key| key.key.as_str()))
            .bind("batch", batch);
        let statement = self.key_statement("retention/aged", &values)?;
        let mut connection = self.keys_database().connection().await?;
        self.keys_database().fetch(&mut connection, &statement).await?.iter().map(decode_aged).collect()
    }

    /// Moves records down to these tiers, in one transaction of their database; `None` where the policy is another
    /// by now, or something is open that `open` does not tell of, and nothing was moved.
    ///
    /// Policy and plans lie in the journal's database. There the policy is held still until the records are moved,
    /// and whoever saves a plan holds it, too: so a plan is either in `open`, and what it names stays, or it is
    /// saved when the records are moved, as it might have been a second later. Where the keys lie in that very
    /// database, all of it is one transaction. Where they do not, the one that holds the policy stays open around
    /// the one that moves; who dies between the two commits has moved records of which no entry tells, and loses
    /// nothing else: how each was moved is to be seen in it.
    pub async fn move_keys(
        &self,
        holder: &Holder,
        policy: &SetPolicy,
        open: &OpenWork,
        moves: &[(AgedKey, Retention)],
    ) -> Result<Option<Vec<MoveEnd>>> {
        let fence =
            self.policy_statement("retention/fence", &Values::new().bind("version", policy.version))?;
        let journal = self.journal();
        let mut moved: Option<Vec<MoveEnd>> = None;
        journal
            .transaction(async |tx| {
                // What is committed elsewhere stays so, if this transaction must be done again.
                if moved.is_none() || self.keys_are_beside_journal() {
                    moved = None;
                    if journal.execute(tx, &fence).await? == 0
                        || !open.tells_of(&self.open_work_on(tx).await?)
                    {
                        return Ok(());
                    }
                    moved = Some(if self.keys_are_beside_journal() {
                        self.move_on(tx, moves).await?
                    } else {
                        let keys = self.keys_database();
                        keys.transaction(async |tx| self.move_on(tx, moves).await).await?
                    });
                }
                let Some(told) = moved.as_ref().and_then(|ends| told(moves, ends)) else { return Ok(()) };
                let told = if self.keys_are_beside_journal() {
                    told
                } else {
                    format!("{told}, in {}", self.keys_database().label)
                };
                let entry = Entry::new(Event::KeysMoved, &holder.actor, (holder.clock)()).note(told);
                self.append_on(tx, &entry).await
            })
            .await?;
        Ok(moved)
    }

    async fn move_on(&self, on: &mut Connection, moves: &[(AgedKey, Retention)]) -> Result<Vec<MoveEnd>> {
        let mut ends = Vec::with_capacity(moves.len());
        for (key, to) in moves {
            ends.push(match to {
                Retention::Archive => self.archive_on(on, key).await?,
                to => self.demote_on(on, key, *to).await?,
            });
        }
        Ok(ends)
    }

    async fn demote_on(&self, on: &mut Connection, key: &AgedKey, to: Retention) -> Result<MoveEnd> {
        let values = as_seen(key)
            .bind("to", to.as_str())
            .bind("result_ref", self.reference_on(on, key).await?)
            .bind_when("digest_parts", (to == Retention::Dispute).then_some("[]"));
        let statement = self.key_statement("retention/demote", &values)?;
        Ok(match self.keys_database().execute(on, &statement).await? {
            0 => MoveEnd::Meanwhile,
            _ => MoveEnd::Moved,
        })
    }

    async fn archive_on(&self, on: &mut Connection, key: &AgedKey) -> Result<MoveEnd> {
        if self.archived_on(on, &key.tenant_id, &key.key).await?.is_some() {
            // Another has archived it since it was read, unless its record is still there.
            let there = self.key_on(on, &key.tenant_id, &key.key).await?;
            return Ok(if there.is_some() { MoveEnd::ArchivedBefore } else { MoveEnd::Meanwhile });
        }
        let result_ref = self.reference_on(on, key).await?;
        let leave = self.key_statement("retention/leave", &as_seen(key))?;
        if self.keys_database().execute(on, &leave).await? == 0 {
            return Ok(MoveEnd::Meanwhile);
        }
        let values = Values::new()
            .bind("key_sha256", key_sha256(&key.tenant_id, &key.key))
            .bind("digest", key.digest.as_str())
            .bind("state", key.aging.state.as_str())
            .bind("exit_code", key.exit_code.map(i64::from))
            .bind("result_ref", result_ref)
            .bind("first_seen_us", key.first_seen.micros())
            .bind("last_seen_us", key.aging.last_seen.micros());
        let archive = self.key_statement("retention/archive", &values)?;
        if !self.keys_database().insert(on, &archive).await? {
            return Err(Error::clash(format!("another archives {} in this very moment", key.key)));
        }
        Ok(MoveEnd::Moved)
    }

    /// What the result is known by when its body is gone: its reference, or else the body's digest.
    async fn reference_on(&self, on: &mut Connection, key: &AgedKey) -> Result<Option<String>> {
        if key.result_ref.is_some() || !key.has_result {
            return Ok(key.result_ref.clone());
        }
        let there = self.key_on(on, &key.tenant_id, &key.key).await?;
        let body = there.and_then(|(record, _)| record.result);
        Ok(body.map(|body| format!("sha256:{}", sha256(body.as_bytes()))))
    }

    /// Keys whose owner's lease is over while their effect may have begun.
    pub async fn lapsed_keys(&self, batch: i64) -> Result<Vec<KeyRecord>> {
        let statement = self.key_statement("retention/lapsed", &Values::new().bind("batch", batch))?;
        let mut connection = self.keys_database().connection().await?;
        let rows = self.keys_database().fetch(&mut connection, &statement).await?;
        rows.iter().map(|row| decode(row, false).map(|(record, _)| record)).collect()
    }

    /// What the records take, by tier and state.
    pub async fn stored_keys(&self) -> Result<Vec<Stored>> {
        let statement = self.key_statement("retention/storage", &Values::new())?;
        let mut connection = self.keys_database().connection().await?;
        let rows = self.keys_database().fetch(&mut connection, &statement).await?;
        rows.iter()
            .map(|row| {
                let r = Reader::new(row, "onefold_idempotency");
                Ok(Stored {
                    tier: r.parsed("retention")?,
                    state: r.parsed("state")?,
                    records: count(&r, "records")?,
                    lapsed: count(&r, "lapsed")?,
                    bytes: count(&r, "bytes")?,
                })
            })
            .collect()
    }

    /// What the archive takes, and how much of it is older than its window.
    pub async fn stored_archive(&self, window: Option<Span>) -> Result<StoredArchive> {
        // Without a window nothing is past it.
        let window = window.map_or(i64::MAX / 2, Span::micros);
        let statement =
            self.key_statement("retention/archive_storage", &Values::new().bind("window_us", window))?;
        let mut connection = self.keys_database().connection().await?;
        let rows = self.keys_database().fetch(&mut connection, &statement).await?;
        let Some(row) = rows.first() else { return Ok(StoredArchive::default()) };
        let r = Reader::new(row, "onefold_idempotency_archive");
        Ok(StoredArchive {
            records: count(&r, "records")?,
            past: count(&r, "past")?,
            bytes: count(&r, "bytes")?,
        })
    }

    /// The plans that may still be applied, and the rows of all steps that have not ended.
    pub async fn open_work(&self) -> Result<OpenWork> {
        let mut connection = self.journal().connection().await?;
        self.open_work_on(&mut connection).await
    }

    async fn open_work_on(&self, on: &mut Connection) -> Result<OpenWork> {
        let journal = self.journal();
        // In this order: a step is one of a plan that is open, or was.
        let plans = self.policy_statement("retention/open_plans", &Values::new())?;
        let plans = journal.fetch(on, &plans).await?;
        let plans = plans.iter().map(|row| Reader::new(row, "onefold_plans").needed("plan_id"));
        let plans = plans.collect::<Result<Vec<_>>>()?;
        let unfinished = self.policy_statement("retention/unfinished", &Values::new())?;
        let unfinished = journal.fetch(on, &unfinished).await?;
        let unfinished = unfinished.iter().map(|row| {
            let r = Reader::new(row, "onefold_steps");
            Ok(UnfinishedRow {
                plan_id: r.needed("plan_id")?,
                intent_id: r.needed("intent_id")?,
                tenant_id: r.id("tenant_id")?,
                ledger: r.parsed("ledger")?,
                row_id: r.id("row_id")?,
            })
        });
        Ok(OpenWork { plans, unfinished: unfinished.collect::<Result<Vec<_>>>()? })
    }

    /// Holds the policy still until the transaction ends, so that no record is moved while a plan is saved.
    pub(super) async fn hold_retention_still(&self, on: &mut Connection) -> Result<()> {
        let statement = self.policy_statement("retention/hold", &Values::new())?;
        self.journal().execute(on, &statement).await.map(drop)
    }

    /// A statement about what lies in the journal's database, wherever the keys do.
    fn policy_statement(&self, file: &str, values: &Values) -> Result<Statement> {
        let dialect = self.journal().dialect;
        Statement::new(self.queries.get(file)?, &pieces(dialect), values, dialect)
            .map_err(|e| e.context(format!("{file}.sql")))
    }
}

/// What a statement compares, that changes a record as it was seen.
fn as_seen(key: &AgedKey) -> Values {
    named(&key.tenant_id, &key.key)
        .bind("version", key.version)
        .bind("state", key.aging.state.as_str())
        .bind("retention", key.aging.retention.as_str())
        .bind("last_seen_us", key.aging.last_seen.micros())
}

/// `hot → replay 12, dispute → archive 3`; nothing where nothing was moved.
fn told(moves: &[(AgedKey, Retention)], ends: &[MoveEnd]) -> Option<String> {
    let mut counts = std::collections::BTreeMap::new();
    for ((key, to), _) in moves.iter().zip(ends).filter(|(_, end)| **end == MoveEnd::Moved) {
        *counts.entry((key.aging.retention, *to)).or_insert(0_u64) += 1;
    }
    let told: Vec<_> = counts.iter().map(|((from, to), n)| format!("{from} → {to} {n}")).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn in_words(policy: &RetentionPolicy) -> String {
    let windows: Vec<_> =
        Retention::ALL.iter().map(|tier| format!("{tier} {}", policy.window(*tier))).collect();
    windows.join(", ")
}

fn count(r: &Reader<'_>, column: &str) -> Result<u64> {
    r.int(column).map(|n| u64::try_from(n).unwrap_or(0))
}

fn decode_policy(row: &sqlx::any::AnyRow) -> Result<SetPolicy> {
    let r = Reader::new(row, "onefold_retention");
    let span = |column| r.int(column).map(Span::from_micros);
    Ok(SetPolicy {
        policy: RetentionPolicy {
            client_retry: span("client_retry_us")?,
            queue: span("queue_us")?,
            longest_replay: span("longest_replay_us")?,
            replay: span("replay_us")?,
            dispute: span("dispute_us")?,
            archive: span("archive_us")?,
        },
        version: r.int("version")?,
        set_by: r.needed("set_by")?,
        set_at: r.time("set_at_us")?,
        because: r.text("because")?,
    })
}

fn decode_aged(row: &sqlx::any::AnyRow) -> Result<AgedKey> {
    let r = Reader::new(row, "onefold_idempotency");
    Ok(AgedKey {
        tenant_id: r.id("tenant_id")?,
        key: r.id("idempotency_key")?,
        aging: Aging {
            state: r.parsed("state")?,
            retention: r.parsed("retention")?,
            last_seen: r.time("last_seen_us")?,
            keep_for: Span::from_micros(r.int("keep_for_us")?),
        },
        digest: r.needed("digest")?,
        version: r.int("version")?,
        exit_code: exit_code(&r)?,
        result_ref: r.text("result_ref")?,
        first_seen: r.time("first_seen_us")?,
        has_result: r.int("has_result")? != 0,
        now: r.time("now_us")?,
    })
}
