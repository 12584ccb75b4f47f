//! The records of idempotency keys. A key is taken by an insert, and taken again by a compare-and-set on
//! its version; leases begin and end by the database's clock, so machines whose clocks differ agree.

use sqlx::any::AnyRow;

use super::enforce::pieces;
use super::rows::Reader;
use super::sql::{Statement, Values};
use super::{Connection, Database, Store, Transaction};
use crate::core::idempotency::{Archived, KeyRecord, KeyState, Known, Named, RequestDigest};
use crate::core::ids::{IdempotencyKey, TenantId};
use crate::core::retention::key_sha256;
use crate::core::status::Ledger;
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Result};
use crate::store::journal::{Entry, Event};

/// Who asks for keys, and for how long one is held at a time.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The operator, as the journal names him.
    pub actor: String,
    /// The operator's process: `ACTOR#HOST/PID-RANDOM`.
    pub owner: String,
    pub lease: Span,
    /// The machine's clock, for the journal alone.
    pub clock: fn() -> Timestamp,
}

/// A key that is held: what every change under it must name.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    pub tenant_id: TenantId,
    pub key: IdempotencyKey,
    pub owner: String,
    pub token: i64,
    pub version: i64,
}

/// What came of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub state: KeyState,
    pub exit_code: Option<u8>,
    pub result_ref: Option<String>,
    pub result: Option<String>,
    pub note: Option<String>,
}

impl Outcome {
    /// One that has a state and a reason alone.
    pub fn bare(state: KeyState, note: impl Into<String>) -> Self {
        Self { state, exit_code: None, result_ref: None, result: None, note: Some(note.into()) }
    }
}

/// Whether an owner could end what it began.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    Recorded,
    /// Another has taken the key: nothing was changed.
    Replaced,
}

impl Store {
    /// The database of the keys that are meant.
    pub fn keys_database(&self) -> &Database {
        &self.databases[self.keys]
    }

    /// Whether a change of a key commits together with the journal.
    pub(super) fn keys_are_beside_journal(&self) -> bool {
        self.keys == self.journal
    }

    /// This store once for each database that has a table of keys: the journal's first, which has those of `once`;
    /// then those of the orders, where services take keys.
    ///
    /// # Errors
    /// Usage, where such a table was made before the archive was known.
    pub async fn of_each_keys(&self) -> Result<Vec<Self>> {
        let mut all = vec![Self { keys: self.journal, ..self.clone() }];
        for at in &self.ledgers[Ledger::Orders as usize] {
            let is_known = all.iter().any(|known| known.keys == *at);
            if !is_known && self.keys_there(&self.databases[*at]).await? {
                all.push(Self { keys: *at, ..self.clone() });
            }
        }
        Ok(all)
    }

    /// Fails with what to type where the tables of keys are not there, as in a journal made before they were known.
    pub async fn must_keep_keys(&self) -> Result<()> {
        let (tenant_id, key) = (TenantId::from(""), IdempotencyKey::from(""));
        let known = async {
            self.known_key(&tenant_id, &key).await?;
            self.names(&tenant_id, &[&key]).await
        };
        known.await.map(|_| ()).map_err(|e| {
            e.context("the idempotency keys cannot be read").hint(
                "`onefold init` adds the tables onefold_idempotency… where they are missing, and changes nothing else",
            )
        })
    }

    /// What is known of a key, in its record or in the archive, and what time it is by the database's clock.
    pub async fn known_key(
        &self,
        tenant_id: &TenantId,
        key: &IdempotencyKey,
    ) -> Result<Option<(Known, Timestamp)>> {
        let mut connection = self.keys_database().connection().await?;
        // In this order: a record moves into the archive, and never back.
        if let Some((record, now)) = self.key_on(&mut connection, tenant_id, key).await? {
            return Ok(Some((Known::Record(record), now)));
        }
        let archived = self.archived_on(&mut connection, tenant_id, key).await?;
        Ok(archived.map(|(archived, now)| (Known::Archived(archived), now)))
    }

    /// The record of a key, and what time it is by the database's clock.
    pub async fn key(
        &self,
        tenant_id: &TenantId,
        key: &IdempotencyKey,
    ) -> Result<Option<(KeyRecord, Timestamp)>> {
        let mut connection = self.keys_database().connection().await?;
        self.key_on(&mut connection, tenant_id, key).await
    }

    /// The records of all keys without their results, the one seen last first; each with the database's time.
    pub async fn keys(
        &self,
        tenant_id: Option<&TenantId>,
        state: Option<KeyState>,
    ) -> Result<Vec<(KeyRecord, Timestamp)>> {
        let values = Values::new()
            .bind_when("tenant_id", tenant_id.map(TenantId::as_str))
            .bind_when("state", state.map(KeyState::as_str));
        let statement = self.key_statement("idempotency/list", &values)?;
        let mut connection = self.keys_database().connection().await?;
        let rows = self.keys_database().fetch(&mut connection, &statement).await?;
        rows.iter().map(|row| decode(row, false)).collect()
    }

    /// Takes a key that has no record, by an insert that stands first in its transaction, and says what it is
    /// about; `None` where another was faster, or the key is archived.
    pub async fn take_key(
        &self,
        holder: &Holder,
        (tenant_id, key): (&TenantId, &IdempotencyKey),
        digest: &RequestDigest,
        keep_for: Span,
        names: &[Named],
    ) -> Result<Option<Hold>> {
        let parts = super::freezes::json(digest)?;
        let values = named(tenant_id, key)
            .bind("digest", digest.whole())
            .bind("digest_parts", parts)
            .bind("owner", holder.owner.as_str())
            .bind("lease_us", holder.lease.micros())
            .bind("keep_for_us", keep_for.micros());
        let statement = self.key_statement("idempotency/insert", &values)?;
        let hold = Hold {
            tenant_id: tenant_id.clone(),
            key: key.clone(),
            owner: holder.owner.clone(),
            token: 1,
            version: 1,
        };
        let entry = self.key_entry(holder, Event::KeyTaken, tenant_id, key).note("token 1");
        match self.insert_key((tenant_id, key), &statement, &entry, names).await {
            Ok(true) => Ok(Some(hold)),
            Ok(false) => Ok(None),
            // Somebody is at it in this very moment: the caller reads what came of that.
            Err(e) if e.is_clash() => Ok(None),
            Err(e) => Err(e),
        }
    }

    async fn insert_key(
        &self,
        (tenant_id, key): (&TenantId, &IdempotencyKey),
        statement: &Statement,
        entry: &Entry,
        names: &[Named],
    ) -> Result<bool> {
        let database = self.keys_database();
        let mut tx = database.begin().await?;
        if !database.insert(&mut tx, statement).await? {
            // On PostgreSQL the transaction is lost; on MySQL it holds a lock on the other's row.
            tx.rollback().await.map_err(|e| database.failed(&e))?;
            return Ok(false);
        }
        // Looked for after the insert, which waits for whoever moves a record of this key into the archive.
        if self.archived_on(&mut tx, tenant_id, key).await?.is_some() {
            tx.rollback().await.map_err(|e| database.failed(&e))?;
            return Ok(false);
        }
        self.name_on(&mut tx, (tenant_id, key), names).await?;
        if self.keys_are_beside_journal() {
            self.append_on(&mut tx, entry).await?;
        }
        database.commit(tx).await?;
        if !self.keys_are_beside_journal() {
            self.tell(entry).await?;
        }
        Ok(true)
    }

    /// Takes a key that is as it was seen, under the next fencing token: as PROCESSING to run, or as UNKNOWN
    /// where what its owner began may have happened. `None` where it is not as it was seen, or its lease
    /// is not over by the database's clock.
    pub async fn take_key_again(
        &self,
        holder: &Holder,
        seen: &KeyRecord,
        to: KeyState,
        note: Option<&str>,
    ) -> Result<Option<Hold>> {
        must_be_legal(seen.state, to)?;
        let values = named(&seen.tenant_id, &seen.key)
            .bind("state", to.as_str())
            .bind("owner", holder.owner.as_str())
            .bind("lease_us", holder.lease.micros())
            .bind("may_have_run", i64::from(to == KeyState::Unknown))
            .bind("note", note)
            .bind("version", seen.version)
            .bind("seen_state", seen.state.as_str());
        let statement = self.key_statement("idempotency/take", &values)?;
        let hold = Hold {
            tenant_id: seen.tenant_id.clone(),
            key: seen.key.clone(),
            owner: holder.owner.clone(),
            token: seen.token + 1,
            version: seen.version + 1,
        };
        let event = if seen.state == KeyState::Processing { Event::KeyTakenOver } else { Event::KeyTaken };
        let mut told = format!("token {}", hold.token);
        if seen.state == KeyState::Processing {
            told += &format!(", from {}", seen.owner);
        }
        told += &note.map(|n| format!(": {n}")).unwrap_or_default();
        let entry = self
            .key_entry(holder, event, &seen.tenant_id, &seen.key)
            .moved(seen.state.as_str(), to.as_str())
            .note(told);
        Ok(self.change_key(&statement, &entry).await?.then_some(hold))
    }

    /// Says that the effect may have happened from now on, and renews the lease; `None` where the key is
    /// another's.
    pub async fn start_key(&self, hold: &Hold, lease: Span) -> Result<Option<Hold>> {
        let values = held(hold).bind("lease_us", lease.micros());
        let statement = self.key_statement("idempotency/start", &values)?;
        let database = self.keys_database();
        let started = database.transaction(async |tx| database.execute(tx, &statement).await).await?;
        Ok((started == 1).then(|| Hold { version: hold.version + 1, ..hold.clone() }))
    }

    /// Renews the lease; whether the key is still ours.
    pub async fn renew_key(&self, hold: &Hold, lease: Span) -> Result<bool> {
        let values = held(hold).bind("lease_us", lease.micros());
        let statement = self.key_statement("idempotency/renew", &values)?;
        let database = self.keys_database();
        Ok(database.transaction(async |tx| database.execute(tx, &statement).await).await? == 1)
    }

    /// Ends what was begun under a hold. Asked for again after an answer that was lost, it is recorded once.
    pub async fn finish_key(&self, holder: &Holder, hold: &Hold, outcome: &Outcome) -> Result<Finished> {
        must_be_legal(KeyState::Processing, outcome.state)?;
        let statement = self.key_statement("idempotency/finish", &with_outcome(held(hold), outcome))?;
        let mut told = format!("token {}", hold.token);
        told += &outcome.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
        told += &outcome.note.as_ref().map(|n| format!(": {n}")).unwrap_or_default();
        let entry = self
            .key_entry(holder, Event::KeyFinished, &hold.tenant_id, &hold.key)
            .moved(KeyState::Processing.as_str(), outcome.state.as_str())
            .note(told);
        if self.change_key(&statement, &entry).await? {
            return Ok(Finished::Recorded);
        }
        let there = self.key(&hold.tenant_id, &hold.key).await?;
        let is_ours = there.is_some_and(|(r, _)| {
            (&r.owner, r.token, r.version, r.state)
                == (&hold.owner, hold.token, hold.version + 1, outcome.state)
        });
        Ok(if is_ours { Finished::Recorded } else { Finished::Replaced })
    }

    /// Says how a key ended that is UNKNOWN and as it was seen; whether it still was.
    pub async fn settle_key(&self, holder: &Holder, seen: &KeyRecord, outcome: &Outcome) -> Result<bool> {
        must_be_legal(KeyState::Unknown, outcome.state)?;
        let values = with_outcome(named(&seen.tenant_id, &seen.key), outcome).bind("version", seen.version);
        let statement = self.key_statement("idempotency/settle", &values)?;
        let entry = self
            .key_entry(holder, Event::KeySettled, &seen.tenant_id, &seen.key)
            .moved(KeyState::Unknown.as_str(), outcome.state.as_str())
            .note(outcome.note.clone().unwrap_or_default());
        self.change_key(&statement, &entry).await
    }

    /// Notes that an archived key was asked for again.
    pub async fn archived_key_was_seen(&self, tenant_id: &TenantId, key: &IdempotencyKey) -> Result<()> {
        let values = fingerprint(tenant_id, key);
        let statement = self.key_statement("idempotency/archived_seen", &values)?;
        let database = self.keys_database();
        database.transaction(async |tx| database.execute(tx, &statement).await.map(|_| ())).await
    }

    /// Notes that a key was asked for again.
    pub async fn key_was_seen(&self, tenant_id: &TenantId, key: &IdempotencyKey) -> Result<()> {
        let statement = self.key_statement("idempotency/seen", &named(tenant_id, key))?;
        let database = self.keys_database();
        database.transaction(async |tx| database.execute(tx, &statement).await.map(|_| ())).await
    }

    /// Changes one record and tells the journal of it.
    async fn change_key(&self, statement: &Statement, entry: &Entry) -> Result<bool> {
        let database = self.keys_database();
        let change = async |tx: &mut Transaction| Ok(database.execute(tx, statement).await? == 1);
        if !self.keys_are_beside_journal() {
            let changed = database.transaction(change).await?;
            if changed {
                self.tell(entry).await?;
            }
            return Ok(changed);
        }
        database
            .transaction(async |tx| {
                let changed = change(tx).await?;
                if changed {
                    self.append_on(tx, entry).await?;
                }
                Ok(changed)
            })
            .await
    }

    /// Writes an entry about keys that lie in another database than the journal, once they are changed: who dies
    /// between leaves a change that its record tells of alone.
    pub(super) async fn tell(&self, entry: &Entry) -> Result<()> {
        self.journal().transaction(async |tx| self.append_on(tx, entry).await).await
    }

    pub(super) async fn key_on(
        &self,
        on: &mut Connection,
        tenant_id: &TenantId,
        key: &IdempotencyKey,
    ) -> Result<Option<(KeyRecord, Timestamp)>> {
        let statement = self.key_statement("idempotency/by_key", &named(tenant_id, key))?;
        let rows = self.keys_database().fetch(on, &statement).await?;
        rows.first().map(|row| decode(row, true)).transpose()
    }

    pub(super) async fn archived_on(
        &self,
        on: &mut Connection,
        tenant_id: &TenantId,
        key: &IdempotencyKey,
    ) -> Result<Option<(Archived, Timestamp)>> {
        let values = fingerprint(tenant_id, key);
        let statement = self.key_statement("idempotency/archived", &values)?;
        let rows = self.keys_database().fetch(on, &statement).await?;
        rows.first().map(decode_archived).transpose()
    }

    pub(super) fn key_statement(&self, file: &str, values: &Values) -> Result<Statement> {
        let dialect = self.keys_database().dialect;
        Statement::new(self.queries.get(file)?, &pieces(dialect), values, dialect)
            .map_err(|e| e.context(format!("{file}.sql")))
    }

    fn key_entry(&self, holder: &Holder, event: Event, tenant_id: &TenantId, key: &IdempotencyKey) -> Entry {
        Entry::new(event, &holder.actor, (holder.clock)()).key(tenant_id, key)
    }
}

fn must_be_legal(from: KeyState, to: KeyState) -> Result<()> {
    if from.may_become(to) {
        return Ok(());
    }
    Err(Error::refused(format!("a key that is {from} does not become {to}"))
        .hint("see it with `onefold once show KEY`"))
}

pub(super) fn named(tenant_id: &TenantId, key: &IdempotencyKey) -> Values {
    Values::new().bind("tenant_id", tenant_id.as_str()).bind("idempotency_key", key.as_str())
}

/// The name of a key in the archive.
pub(super) fn fingerprint(tenant_id: &TenantId, key: &IdempotencyKey) -> Values {
    Values::new().bind("key_sha256", key_sha256(tenant_id, key))
}

pub(super) fn held(hold: &Hold) -> Values {
    named(&hold.tenant_id, &hold.key)
        .bind("owner", hold.owner.as_str())
        .bind("token", hold.token)
        .bind("version", hold.version)
}

pub(super) fn with_outcome(values: Values, outcome: &Outcome) -> Values {
    values
        .bind("state", outcome.state.as_str())
        .bind("exit_code", outcome.exit_code.map(i64::from))
        .bind("result_ref", outcome.result_ref.as_deref())
        .bind("result", outcome.result.as_deref())
        .bind("note", outcome.note.as_deref())
}

pub(super) fn decode_archived(row: &AnyRow) -> Result<(Archived, Timestamp)> {
    let r = Reader::new(row, "onefold_idempotency_archive");
    let archived = Archived {
        digest: r.needed("digest")?,
        state: r.parsed("state")?,
        exit_code: exit_code(&r)?,
        result_ref: r.text("result_ref")?,
        first_seen: r.time("first_seen_us")?,
        last_seen: r.time("last_seen_us")?,
        archived_at: r.time("archived_at_us")?,
    };
    Ok((archived, r.time("now_us")?))
}

pub(super) fn exit_code(r: &Reader<'_>) -> Result<Option<u8>> {
    r.int_or_null("exit_code")?.map(u8::try_from).transpose().map_err(|e| r.bad("exit_code", e))
}

/// The parts of a request where they are kept, else its whole digest.
fn digest(r: &Reader<'_>) -> Result<RequestDigest> {
    let parts = r.needed("digest_parts")?;
    let digest: RequestDigest = serde_json::from_str(&parts).map_err(|e| r.bad("digest_parts", e))?;
    if digest.names().next().is_some() { Ok(digest) } else { r.needed("digest").map(RequestDigest::folded) }
}

pub(super) fn decode(row: &AnyRow, with_result: bool) -> Result<(KeyRecord, Timestamp)> {
    let r = Reader::new(row, "onefold_idempotency");
    let record = KeyRecord {
        tenant_id: r.id("tenant_id")?,
        key: r.id("idempotency_key")?,
        digest: digest(&r)?,
        state: r.parsed("state")?,
        owner: r.needed("owner")?,
        lease_until: r.time("lease_until_us")?,
        token: r.int("token")?,
        version: r.int("version")?,
        may_have_run: r.int("may_have_run")? != 0,
        result_ref: r.text("result_ref")?,
        exit_code: exit_code(&r)?,
        result: if with_result { r.text("result")? } else { None },
        note: r.text("note")?,
        attempts: r.int("attempts")?,
        first_seen: r.time("first_seen_us")?,
        last_seen: r.time("last_seen_us")?,
        keep_for: Span::from_micros(r.int("keep_for_us")?),
        retention: r.parsed("retention")?,
    };
    Ok((record, r.time("now_us")?))
}
