//! Freezes in the database: made one at a time, held by a lease, fenced by a token.

use std::collections::BTreeSet;

use sqlx::any::AnyRow;

use super::journal::{Entry, Event};
use super::rows::Reader;
use super::sql::Values;
use super::{Connection, Store};
use crate::core::freeze::{Effect, Freeze, FreezeMode, FreezeState, HeldIntent};
use crate::core::scope::Scope;
use crate::core::time::{Span, Timestamp};
use crate::error::{Error, Result};

/// What an operator asks to be frozen.
#[derive(Clone, Debug)]
pub struct FreezeRequest {
    pub freeze_id: String,
    pub owner: String,
    pub reason: String,
    pub scope: Scope,
    pub effects: Vec<Effect>,
    /// Whose messages are stopped; empty for all.
    pub topics: BTreeSet<String>,
    pub mode: FreezeMode,
    pub lease: Span,
}

/// What to type where a plan has no freeze to be applied under.
pub const FREEZE: &str = "onefold freeze --show SHOW --enforce --reason TEXT";

/// How far a lease is renewed at least before the copies of its freeze are written anew.
const COPY_STRIDE: Span = Span::from_mins(1);

impl Store {
    /// Freezes a scope; one that is to be enforced is copied to every ledger's database, or to none.
    ///
    /// # Errors
    /// Refused, naming the holder, where a live freeze overlaps it.
    pub async fn freeze(&self, request: &FreezeRequest, now: Timestamp) -> Result<Freeze> {
        let journal = self.journal();
        let frozen = journal
            .transaction(async |tx| {
                let token = self.next_token(tx).await?;
                for other in self.open_freezes_on(tx).await? {
                    if !other.scope.overlaps(&request.scope) {
                        continue;
                    }
                    if other.is_live(now) {
                        return Err(overlap(&other, &request.owner));
                    }
                    self.set_state(tx, &other, FreezeState::Lapsed, None).await?;
                    self.copy_freeze(tx, &Freeze { state: FreezeState::Lapsed, ..other.clone() }, now)
                        .await?;
                    let entry = Entry::new(Event::Lapsed, &request.owner, now).freeze(&other.freeze_id).note(
                        format!(
                            "its lease ran out at {}; {} takes the scope",
                            other.lease_until, request.freeze_id
                        ),
                    );
                    self.append_on(tx, &entry).await?;
                }
                let freeze = Freeze {
                    freeze_id: request.freeze_id.clone(),
                    token,
                    owner: request.owner.clone(),
                    reason: request.reason.clone(),
                    scope: request.scope.clone(),
                    effects: request.effects.clone(),
                    topics: request.topics.clone(),
                    mode: request.mode,
                    narrowed_to: None,
                    state: FreezeState::Live,
                    frozen_at: now,
                    lease_until: now.plus(request.lease),
                };
                let values = Values::new()
                    .bind("freeze_id", freeze.freeze_id.as_str())
                    .bind("token", token)
                    .bind("owner", freeze.owner.as_str())
                    .bind("reason", freeze.reason.as_str())
                    .bind("scope", json(&freeze.scope)?)
                    .bind("effects", json(&freeze.effects)?)
                    .bind("topics", json(&freeze.topics)?)
                    .bind("mode", freeze.mode.as_str())
                    .bind("state", freeze.state.as_str())
                    .bind("frozen_at_us", freeze.frozen_at.micros())
                    .bind("lease_until_us", freeze.lease_until.micros());
                journal.execute(tx, &journal.statement(&self.queries, "freezes/insert", &values)?).await?;
                let entry = Entry::new(Event::Froze, &freeze.owner, now)
                    .freeze(&freeze.freeze_id)
                    .note(format!("{}: {}", freeze.mode, freeze.reason));
                self.append_on(tx, &entry).await?;
                self.copy_freeze(tx, &freeze, now).await?;
                Ok(freeze)
            })
            .await;
        if frozen.is_err() && request.mode == FreezeMode::Enforced {
            self.withdraw_copies(&request.freeze_id).await;
        }
        frozen
    }

    /// A freeze by its id.
    ///
    /// # Errors
    /// Usage, where there is none.
    pub async fn freeze_by_id(&self, freeze_id: &str) -> Result<Freeze> {
        let mut connection = self.journal().connection().await?;
        self.freeze_on(&mut connection, freeze_id).await
    }

    /// Freezes that nobody has ended, lapsed ones included, the oldest first.
    pub async fn open_freezes(&self) -> Result<Vec<Freeze>> {
        let mut connection = self.journal().connection().await?;
        self.open_freezes_on(&mut connection).await
    }

    /// Renews a lease by its owner and token. `revive` also renews one that has run out, as long as
    /// no other freeze has taken the scope meanwhile.
    ///
    /// # Errors
    /// Refused, saying who holds it now, where it is no longer ours, lapsed or ended.
    pub async fn renew(
        &self,
        freeze_id: &str,
        owner: &str,
        token: Option<i64>,
        lease: Span,
        revive: bool,
        now: Timestamp,
    ) -> Result<Freeze> {
        let journal = self.journal();
        journal
            .transaction(async |tx| {
                if revive {
                    // Whoever freezes waits for us here, so nobody takes the scope while we look.
                    self.next_token(tx).await?;
                }
                let freeze = self.freeze_on(tx, freeze_id).await?;
                held_by(&freeze, owner, token)?;
                if !revive && !freeze.is_live(now) {
                    return Err(lapsed(&freeze));
                }
                for other in self.open_freezes_on(tx).await? {
                    if other.freeze_id != freeze.freeze_id
                        && other.is_live(now)
                        && other.scope.overlaps(&freeze.scope)
                    {
                        return Err(overlap(&other, owner));
                    }
                }
                let until = now.plus(lease).max(freeze.lease_until);
                // A copy is not written anew for every step: the lease moves on in strides.
                let is_stride = revive
                    || freeze.mode != FreezeMode::Enforced
                    || freeze.lease_until.plus(COPY_STRIDE) <= until;
                let until = if is_stride { until } else { freeze.lease_until };
                let values = Values::new()
                    .bind("freeze_id", freeze_id)
                    .bind("owner", owner)
                    .bind("token", freeze.token)
                    .bind("lease_until_us", until.micros());
                let renewed =
                    journal.execute(tx, &journal.statement(&self.queries, "freezes/renew", &values)?).await?;
                if renewed != 1 {
                    return Err(Error::refused(format!(
                        "{freeze_id} was taken over while it was being renewed"
                    )));
                }
                if revive {
                    let entry = Entry::new(Event::Renewed, owner, now)
                        .freeze(freeze_id)
                        .note(format!("until {until}"));
                    self.append_on(tx, &entry).await?;
                }
                let renewed = Freeze { lease_until: until, ..freeze };
                if is_stride {
                    self.copy_freeze(tx, &renewed, now).await?;
                }
                Ok(renewed)
            })
            .await
    }

    /// Takes a freeze over from its owner: the next token, so that whatever the old one still does
    /// under the old token is fenced off.
    ///
    /// # Errors
    /// Refused where it has ended.
    pub async fn take_over(
        &self,
        freeze_id: &str,
        owner: &str,
        reason: &str,
        lease: Span,
        now: Timestamp,
    ) -> Result<Freeze> {
        let journal = self.journal();
        journal
            .transaction(async |tx| {
                let token = self.next_token(tx).await?;
                let freeze = self.freeze_on(tx, freeze_id).await?;
                if !freeze.is_open() {
                    return Err(ended(&freeze));
                }
                let taken =
                    Freeze { owner: owner.to_owned(), token, lease_until: now.plus(lease), ..freeze.clone() };
                let values = Values::new()
                    .bind("freeze_id", freeze_id)
                    .bind("owner", owner)
                    .bind("token", token)
                    .bind("old_token", freeze.token)
                    .bind("lease_until_us", taken.lease_until.micros());
                if journal
                    .execute(tx, &journal.statement(&self.queries, "freezes/take_over", &values)?)
                    .await?
                    != 1
                {
                    return Err(Error::refused(format!(
                        "{freeze_id} was ended while it was being taken over"
                    )));
                }
                let entry = Entry::new(Event::TookOver, owner, now).freeze(freeze_id).note(format!(
                    "from {} (token {} is fenced off, {token} holds): {reason}",
                    freeze.owner, freeze.token
                ));
                self.append_on(tx, &entry).await?;
                self.copy_freeze(tx, &taken, now).await?;
                Ok(taken)
            })
            .await
    }

    /// Makes a freeze that is only recorded hold in another way.
    ///
    /// # Errors
    /// Refused, where it is not ours.
    pub async fn set_mode(
        &self,
        freeze_id: &str,
        owner: &str,
        mode: FreezeMode,
        now: Timestamp,
    ) -> Result<Freeze> {
        let journal = self.journal();
        journal
            .transaction(async |tx| {
                let freeze = self.freeze_on(tx, freeze_id).await?;
                held_by(&freeze, owner, None)?;
                let freeze = Freeze { mode, ..freeze };
                let values = Values::new()
                    .bind("freeze_id", freeze_id)
                    .bind("token", freeze.token)
                    .bind("mode", mode.as_str());
                let set = journal.statement(&self.queries, "freezes/set_mode", &values)?;
                if journal.execute(tx, &set).await? != 1 {
                    return Err(Error::refused(format!("{freeze_id} was taken over meanwhile")));
                }
                let entry = Entry::new(Event::Renewed, owner, now)
                    .freeze(freeze_id)
                    .note(format!("{mode} from now on"));
                self.append_on(tx, &entry).await?;
                self.copy_freeze(tx, &freeze, now).await?;
                Ok(freeze)
            })
            .await
    }

    /// Lets go of a freeze, whole or but for some intents. Stock release thaws last: where all of
    /// it ends, the other effects are lifted in a transaction of their own before.
    pub async fn thaw(
        &self,
        freeze: &Freeze,
        still_held: Vec<HeldIntent>,
        actor: &str,
        note: &str,
        now: Timestamp,
    ) -> Result<Freeze> {
        let journal = self.journal();
        let stages = if still_held.is_empty() {
            let last: Vec<_> =
                freeze.effects.iter().copied().filter(|e| *e == Effect::StockRelease).collect();
            vec![(FreezeState::Narrowed, last), (FreezeState::Thawed, Vec::new())]
        } else {
            vec![(FreezeState::Narrowed, freeze.effects.clone())]
        };
        let mut thawed = freeze.clone();
        for (state, effects) in stages {
            thawed = Freeze { state, effects, ..thawed };
            if !still_held.is_empty() {
                thawed.narrowed_to = Some(still_held.clone());
            }
            let event = if state == FreezeState::Thawed { Event::Thawed } else { Event::Narrowed };
            let left: Vec<_> = thawed.effects.iter().map(|e| e.as_str()).collect();
            let what = match (state, still_held.len()) {
                (FreezeState::Thawed, _) => "thawed".to_owned(),
                (_, 0) => format!(
                    "still stopped: {}",
                    if left.is_empty() { "nothing".to_owned() } else { left.join(", ") }
                ),
                (_, n) => format!("{n} intents stay frozen"),
            };
            let note = if note.is_empty() { what } else { format!("{what}: {note}") };
            let entry = Entry::new(event, actor, now).freeze(&freeze.freeze_id).note(note);
            journal
                .transaction(async |tx| {
                    self.set_state(tx, &thawed, state, Some(freeze.token)).await?;
                    self.append_on(tx, &entry).await?;
                    self.copy_freeze(tx, &thawed, now).await
                })
                .await?;
        }
        Ok(thawed)
    }

    /// Holds a freeze still until the transaction ends: nobody takes it over, thaws it or lets it lapse
    /// before what is done in it is committed.
    ///
    /// # Errors
    /// Refused, saying who holds it now, where it is no longer live under this token.
    pub async fn fence(
        &self,
        on: &mut Connection,
        freeze_id: &str,
        owner: &str,
        token: i64,
        now: Timestamp,
    ) -> Result<()> {
        let journal = self.journal();
        let values =
            Values::new().bind("freeze_id", freeze_id).bind("token", token).bind("now_us", now.micros());
        if journal.execute(on, &journal.statement(&self.queries, "freezes/fence", &values)?).await? == 1 {
            return Ok(());
        }
        let freeze = self.freeze_on(on, freeze_id).await?;
        held_by(&freeze, owner, Some(token))?;
        Err(lapsed(&freeze))
    }

    async fn next_token(&self, tx: &mut Connection) -> Result<i64> {
        let journal = self.journal();
        let none = Values::new();
        journal.execute(tx, &journal.statement(&self.queries, "freezes/next_token", &none)?).await?;
        let rows =
            journal.fetch(tx, &journal.statement(&self.queries, "freezes/read_counter", &none)?).await?;
        let row = rows.first().ok_or_else(|| {
            Error::usage(format!("{} has no onefold tables", journal.label))
                .hint("create them with `onefold init`")
        })?;
        Reader::new(row, "onefold_counters").int("value")
    }

    async fn freeze_on(&self, on: &mut Connection, freeze_id: &str) -> Result<Freeze> {
        let journal = self.journal();
        let values = Values::new().bind("freeze_id", freeze_id);
        let rows = journal.fetch(on, &journal.statement(&self.queries, "freezes/by_id", &values)?).await?;
        rows.first().map(decode).transpose()?.ok_or_else(|| {
            Error::usage(format!("there is no freeze {freeze_id}"))
                .hint("`onefold status` lists those that there are")
        })
    }

    async fn open_freezes_on(&self, on: &mut Connection) -> Result<Vec<Freeze>> {
        let journal = self.journal();
        let statement = journal.statement(&self.queries, "freezes/open", &Values::new())?;
        journal.fetch(on, &statement).await?.iter().map(decode).collect()
    }

    async fn set_state(
        &self,
        on: &mut Connection,
        freeze: &Freeze,
        state: FreezeState,
        token: Option<i64>,
    ) -> Result<()> {
        let journal = self.journal();
        let narrowed_to = freeze.narrowed_to.as_ref().map(json).transpose()?;
        let values = Values::new()
            .bind("freeze_id", freeze.freeze_id.as_str())
            .bind("token", token.unwrap_or(freeze.token))
            .bind("state", state.as_str())
            .bind("effects", json(&freeze.effects)?)
            .bind("narrowed_to", narrowed_to);
        match journal.execute(on, &journal.statement(&self.queries, "freezes/set_state", &values)?).await? {
            1 => Ok(()),
            _ => Err(Error::refused(format!("{} was taken over meanwhile", freeze.freeze_id))
                .hint("see who holds it with `onefold status`")),
        }
    }
}

/// Refuses, saying why, unless the freeze is open and held by this owner (and under this token).
pub fn held_by(freeze: &Freeze, owner: &str, token: Option<i64>) -> Result<()> {
    if !freeze.is_open() {
        return Err(ended(freeze));
    }
    if freeze.owner != owner || token.is_some_and(|t| t != freeze.token) {
        return Err(Error::refused(format!(
            "{} is held by {} (token {}): {}",
            freeze.freeze_id, freeze.owner, freeze.token, freeze.reason
        ))
        .hint(format!(
            "if its holder is gone: onefold freeze --take-over {} --reason TEXT",
            freeze.freeze_id
        )));
    }
    Ok(())
}

/// The refusal that a lapsed lease is answered with.
pub fn lapsed(freeze: &Freeze) -> Error {
    Error::refused(format!("the lease of {} ran out at {}", freeze.freeze_id, freeze.lease_until))
        .hint(format!("renew it with `onefold freeze --renew {}`, then plan again", freeze.freeze_id))
}

fn ended(freeze: &Freeze) -> Error {
    let how = if freeze.state == FreezeState::Lapsed {
        "has lapsed, and another took its scope"
    } else {
        "is thawed"
    };
    Error::refused(format!("{} {how}", freeze.freeze_id)).hint(format!("freeze the scope again: {FREEZE}"))
}

fn overlap(other: &Freeze, asking: &str) -> Error {
    let id = &other.freeze_id;
    let hint = if other.owner == asking {
        format!("it is yours: onefold freeze --renew {id}, or onefold thaw {id}")
    } else {
        format!(
            "wait for it, narrow your scope, or take it over: onefold freeze --take-over {id} --reason TEXT"
        )
    };
    Error::refused(format!(
        "{id} overlaps: held by {} until {} ({})",
        other.owner, other.lease_until, other.reason
    ))
    .hint(hint)
}

fn decode(row: &AnyRow) -> Result<Freeze> {
    let r = Reader::new(row, "onefold_freezes");
    Ok(Freeze {
        freeze_id: r.needed("freeze_id")?,
        token: r.int("token")?,
        owner: r.needed("owner")?,
        reason: r.needed("reason")?,
        scope: from_json(&r, "scope")?,
        effects: from_json(&r, "effects")?,
        topics: from_json(&r, "topics")?,
        mode: r.parsed("mode")?,
        narrowed_to: match r.text("narrowed_to")? {
            Some(_) => Some(from_json(&r, "narrowed_to")?),
            None => None,
        },
        state: r.parsed("state")?,
        frozen_at: r.time("frozen_at_us")?,
        lease_until: r.time("lease_until_us")?,
    })
}

fn from_json<T: serde::de::DeserializeOwned>(r: &Reader<'_>, column: &str) -> Result<T> {
    serde_json::from_str(&r.needed(column)?).map_err(|e| r.bad(column, e))
}

pub(super) fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::failure(format!("cannot write JSON: {e}")))
}
