//! The guarded writes on the ledgers: one compare-and-set on one row (contract, section 5), by our
//! SQL files or a site's own, or by a command of the site where rows live in no database.

use std::collections::HashMap;

use super::rows::LedgerRow;
use super::sql::{Statement, Values, alternatives, statements};
use super::{Connection, Database, Store};
use crate::core::ids::*;
use crate::core::ledger::{Hold, Message, Order, Payment, Shard};
use crate::core::money::Currency;
use crate::core::status::Ledger;
use crate::core::time::Timestamp;
use crate::error::{Error, Result};

/// What of a row changes when it moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowState {
    pub status: String,
    pub version: Version,
    /// Of payments.
    pub refunded_minor: Option<i64>,
    pub shard: Shard,
}

/// A move that is asked for.
#[derive(Clone, Debug)]
pub struct Move<'a> {
    pub ledger: Ledger,
    pub tenant_id: &'a TenantId,
    pub id: &'a RowId,
    pub from: &'a str,
    pub to: &'a str,
    /// As seen.
    pub version: &'a Version,
    /// What a payment's move gives back, in its currency's minor unit.
    pub refund_minor: i64,
    /// The refund or other amount that a payment's move belongs to, and its currency.
    pub amount: Option<(i64, Currency)>,
    /// When the provider captured it, where it says so.
    pub captured_at: Option<Timestamp>,
    /// Belongs to the effect: for rows that a site's own schema keeps about it.
    pub step_key: &'a str,
    pub actor: &'a str,
    pub now: Timestamp,
}

/// How a move ended.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It was as seen, and is now so.
    Now(RowState),
    /// It was not as seen; nothing was written. `None` where the row is gone.
    NotAsSeen(Option<RowState>),
}

/// What a database apart from the journal says of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The version that the step left its row with, whatever has become of the row since; or, where its
    /// move was given up, by whom.
    text: String,
    /// Zero where it was given up.
    moved_at: Timestamp,
}

impl Mark {
    /// The version that the step left its row with; `None` where it has not moved it.
    pub fn version(&self) -> Option<Version> {
        (self.moved_at.micros() != 0).then(|| Version::from(self.text.as_str()))
    }
}

impl Store {
    /// Moves one row, on a transaction of its shard's database.
    ///
    /// # Errors
    /// Usage, where the status machine has no such move: nothing is written. Failure, where the SQL
    /// changed more than one row: the caller must not commit.
    pub async fn move_row(&self, on: &mut Connection, shard: Shard, asked: &Move<'_>) -> Result<Moved> {
        let Move { ledger, tenant_id, id, from, to, .. } = *asked;
        if !ledger.may_move(from, to) {
            return Err(Error::usage(format!("a {} never moves from {from} to {to}", ledger.row_name())));
        }
        let database = self.shard(ledger, shard);
        let file = self.queries.move_name(ledger, to);
        let values = self.move_values(asked);
        let pass = self.open_pass(on, database).await?;
        let mut moved = false;
        for alternative in alternatives(self.queries.get(&file)?) {
            if self.run_guarded(on, database, &file, &alternative, &values).await? {
                moved = true;
                break;
            }
        }
        self.close_pass(on, database, pass).await?;
        let now = self.row_states_on(on, ledger, shard, tenant_id, &[id]).await?.remove(id);
        match (moved, now) {
            (true, Some(now)) if now.status == to => Ok(Moved::Now(now)),
            (true, now) => Err(Error::failure(format!(
                "{file}.sql moved {} {id} to {to}, but the ledger says {}",
                ledger.row_name(),
                now.map_or("that it is gone".to_owned(), |row| row.status)
            ))
            .hint(
                "the move and the ledger's SELECT must agree; `onefold check --try-moves` shows how they do",
            )),
            (false, now) => Ok(Moved::NotAsSeen(now)),
        }
    }

    /// Whether rows of a ledger may be moved many at a time: they are moved by our own SQL.
    pub fn moves_together(&self, ledger: Ledger, to: &str) -> bool {
        !self.is_foreign_ledger(ledger)
            && !self.queries.is_shadowed(&self.queries.move_name(ledger, to))
            && self.queries.find(&format!("together/{}", ledger.row_name())).is_some()
    }

    /// Moves rows that are alike by one statement, on a transaction of their shard's database: `alike` says how and
    /// what they have in common, and `ids` which they are. What the rows say then, in the order of `ids`.
    ///
    /// `None` where one of them was not as seen: which, this does not say, and the caller must not commit.
    pub async fn move_rows(
        &self,
        on: &mut Connection,
        shard: Shard,
        alike: &Move<'_>,
        ids: &[&RowId],
    ) -> Result<Option<Vec<RowState>>> {
        let Move { ledger, tenant_id, from, to, .. } = *alike;
        if !ledger.may_move(from, to) {
            return Err(Error::usage(format!("a {} never moves from {from} to {to}", ledger.row_name())));
        }
        let database = self.shard(ledger, shard);
        let list: Vec<_> = ids.iter().map(ToString::to_string).collect();
        let values = self.move_values(alike).without(&["id"]).bind("ids", list);
        let file = format!("together/{}", ledger.row_name());
        let statement = database.statement(&self.queries, &file, &values)?;
        let pass = self.open_pass(on, database).await?;
        let moved = database.execute(on, &statement).await.map_err(|e| e.context(format!("{file}.sql")))?;
        self.close_pass(on, database, pass).await?;
        if usize::try_from(moved) != Ok(ids.len()) {
            return Ok(None);
        }
        let mut now = self.row_states_on(on, ledger, shard, tenant_id, ids).await?;
        let states: Option<Vec<_>> = ids.iter().map(|id| now.remove(*id)).collect();
        Ok(states.filter(|states| states.iter().all(|row| row.status == to)))
    }

    /// Runs the statements of one alternative: the first is the guard, and unless it changes a row
    /// the others do not run.
    pub(super) async fn run_guarded(
        &self,
        on: &mut Connection,
        database: &Database,
        file: &str,
        text: &str,
        values: &Values,
    ) -> Result<bool> {
        for (i, sql) in statements(text).into_iter().enumerate() {
            let statement = Statement::new(sql, &[], values, database.dialect)
                .map_err(|e| e.context(format!("{file}.sql")))?;
            let changed = database.execute(on, &statement).await.map_err(|e| {
                e.context(format!("{file}.sql")).hint("when that is put right, run the same command again")
            })?;
            match (i, changed) {
                (0, 0) => return Ok(false),
                (0, 1) | (1.., _) => {}
                (0, n) => {
                    return Err(Error::failure(format!("{file}.sql changed {n} rows where one was meant"))
                        .hint("its first statement must be guarded by tenant, id and from-status"));
                }
            }
        }
        Ok(true)
    }

    /// Everything that a move's SQL may name.
    pub(super) fn move_values(&self, asked: &Move<'_>) -> Values {
        let Move { ledger, from, to, .. } = *asked;
        let major = |minor: i64| asked.amount.map(|(_, currency)| currency.show_bare(minor.into()));
        let values = Values::new()
            .bind("tenant_id", asked.tenant_id.as_str())
            .bind("id", asked.id.as_str())
            .bind("from", self.statuses.all(ledger, from))
            .bind("to", self.statuses.first(ledger, to))
            .bind("version", asked.version.as_str())
            .bind("next_version", next_version(asked.version))
            .bind("step_key", asked.step_key)
            .bind("actor", asked.actor)
            .bind("now_us", asked.now.micros());
        if ledger != Ledger::Payments {
            return values;
        }
        values
            .bind("refund_minor", asked.refund_minor)
            // Never null, as :refund_minor is not: a site adds it to a column of its own.
            .bind("refund_major", major(asked.refund_minor).unwrap_or_else(|| "0".to_owned()))
            .bind("amount_minor", asked.amount.map(|(minor, _)| minor))
            .bind("amount_major", asked.amount.and_then(|(minor, _)| major(minor)))
            .bind("currency", asked.amount.map(|(_, currency)| currency.code()))
            .bind("captured_at_us", asked.captured_at.map(Timestamp::micros))
    }

    /// Marks a step as moved, in the transaction of its move, in a database apart from the journal. `seen`
    /// is its mark as it was when the step was claimed.
    ///
    /// # Errors
    /// Refused, where the mark is another by now: whoever took the step over has given this move up, and
    /// the caller must not commit it.
    pub async fn mark(
        &self,
        on: &mut Connection,
        shard: Shard,
        asked: &Move<'_>,
        seen: Option<&Mark>,
        version_after: &Version,
    ) -> Result<()> {
        let mark = Mark { text: version_after.to_string(), moved_at: asked.now };
        if self.set_mark(on, asked.ledger, shard, asked.step_key, seen, &mark).await? {
            return Ok(());
        }
        let (row, id) = (asked.ledger.row_name(), asked.id);
        Err(Error::refused(format!("another process took over {row} {id} while this one was at it"))
            .hint("see who is at it with `onefold status`"))
    }

    /// Gives up the move of a step that a run claimed and has not made, so that it is not made later
    /// either, should that run only be slow. Whether it is given up; else its mark has changed meanwhile.
    pub async fn give_up_move(
        &self,
        ledger: Ledger,
        shard: Shard,
        step_key: &str,
        seen: Option<&Mark>,
        owner: &str,
        now: Timestamp,
    ) -> Result<bool> {
        let text = format!("given up by {owner} at {}", now.micros());
        let mark = Mark { text, moved_at: Timestamp::from_micros(0) };
        self.shard(ledger, shard)
            .transaction(async |tx| self.set_mark(tx, ledger, shard, step_key, seen, &mark).await)
            .await
    }

    /// Whether the mark was still as seen, and is now this one.
    async fn set_mark(
        &self,
        on: &mut Connection,
        ledger: Ledger,
        shard: Shard,
        step_key: &str,
        seen: Option<&Mark>,
        mark: &Mark,
    ) -> Result<bool> {
        let database = self.shard(ledger, shard);
        let values = Values::new()
            .bind("step_key", step_key)
            .bind("version_after", mark.text.as_str())
            .bind("moved_at_us", mark.moved_at.micros());
        match seen {
            None => database.insert(on, &database.statement(&self.queries, "marks/add", &values)?).await,
            Some(seen) => {
                let values = values.bind("seen", seen.text.as_str());
                let changed = database.statement(&self.queries, "marks/change", &values)?;
                Ok(database.execute(on, &changed).await? == 1)
            }
        }
    }

    /// The mark of a step in the databases apart from the journal.
    pub async fn mark_of(&self, ledger: Ledger, step_key: &str) -> Result<Option<Mark>> {
        for (shard, database) in self.shards(ledger) {
            if self.is_beside_journal(ledger, shard) {
                continue;
            }
            let values = Values::new().bind("step_key", step_key);
            let statement = database.statement(&self.queries, "marks/by_key", &values)?;
            let mut connection = database.connection().await?;
            if let Some(row) = database.fetch(&mut connection, &statement).await?.first() {
                let r = super::rows::Reader::new(row, "onefold_marks");
                return Ok(Some(Mark { text: r.needed("version_after")?, moved_at: r.time("moved_at_us")? }));
            }
        }
        Ok(None)
    }

    /// A row's state, looked for in every shard; `None` where it is in none.
    pub async fn row_state(
        &self,
        ledger: Ledger,
        tenant_id: &TenantId,
        id: &RowId,
    ) -> Result<Option<RowState>> {
        for (shard, database) in self.shards(ledger) {
            let mut connection = database.connection().await?;
            let mut state = self.row_states_on(&mut connection, ledger, shard, tenant_id, &[id]).await?;
            if let Some(state) = state.remove(id) {
                return Ok(Some(state));
            }
        }
        Ok(None)
    }

    /// The states of those of some rows of a shard that are there.
    async fn row_states_on(
        &self,
        on: &mut Connection,
        ledger: Ledger,
        shard: Shard,
        tenant_id: &TenantId,
        ids: &[&RowId],
    ) -> Result<HashMap<RowId, RowState>> {
        let database = self.shard(ledger, shard);
        let list: Vec<_> = ids.iter().map(ToString::to_string).collect();
        let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("ids", list);
        macro_rules! state_of {
            ($row:ty, $refunded:expr) => {{
                let rows: Vec<$row> = self.rows_on(on, shard, database, "reads/by_ids", &values).await?;
                let state = |r: $row| {
                    let refunded_minor = $refunded(&r);
                    let status = r.status.to_string();
                    (r.row_id(), RowState { status, version: r.version, refunded_minor, shard })
                };
                rows.into_iter().filter(|r| r.tenant_id == *tenant_id).map(state).collect()
            }};
        }
        Ok(match ledger {
            Ledger::Orders => state_of!(Order, |_: &Order| None),
            Ledger::Payments => state_of!(Payment, |p: &Payment| Some(p.refunded_minor)),
            Ledger::Inventory => state_of!(Hold, |_: &Hold| None),
            Ledger::Messages => state_of!(Message, |_: &Message| None),
        })
    }
}

/// The version that our own schema gives a moved row: the next number of a counter, and for any
/// other text one that it has not had.
fn next_version(version: &Version) -> String {
    let text = version.as_str();
    match text.parse::<u64>() {
        Ok(number) => number.saturating_add(1).to_string(),
        Err(_) => match text.rsplit_once('+').and_then(|(stem, n)| Some((stem, n.parse::<u64>().ok()?))) {
            Some((stem, n)) => format!("{stem}+{}", n.saturating_add(1)),
            None => format!("{text}+1"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_row_never_keeps_its_version() {
        let next = |v: &str| next_version(&v.into());
        assert_eq!(next("1"), "2");
        assert_eq!(next("etag"), "etag+1");
        assert_eq!(next("etag+1"), "etag+2");
        assert_eq!(next(""), "+1");
    }
}
