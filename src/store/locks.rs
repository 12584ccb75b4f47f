//! A lock history that lies in a table, read through a SELECT of the site's.

use futures_util::TryStreamExt as _;

use super::Store;
use super::rows::Reader;
use super::sql::{Statement, Values, statements};
use crate::core::locks::{Event, EventKind};
use crate::core::time::Span;
use crate::error::{Error, Result};

/// What to do about a row that is no event.
const HINT: &str = "correct the SELECT of --query: it gives lock_key, event, owner, node and result as text, and token, \
                    lease_ms and at_us as whole numbers";

impl Store {
    /// The events that a site's SELECT gives, by time, one by one. It stands within ours, so it can change nothing.
    ///
    /// # Errors
    /// Usage, where it is not one SELECT, or a row is no event.
    pub async fn each_lock_event(
        &self,
        select: &str,
        mut take: impl FnMut(Event) -> Result<()>,
    ) -> Result<()> {
        let [select] = statements(select)[..] else {
            return Err(Error::usage("the query of the lock history is not one SELECT")
                .hint("SELECT … AS lock_key, … AS event, … AS at_us FROM …, without a semicolon inside"));
        };
        let database = self.journal();
        let history = format!("(\n{select}\n) AS history");
        let statement = Statement::new(
            self.queries.get("locks/history")?,
            &[("history", &history)],
            &Values::new(),
            database.dialect,
        )?;
        let mut connection = database.connection().await?;
        let mut rows = database.stream(&mut connection, &statement);
        let mut line = 0;
        while let Some(row) = rows.try_next().await? {
            line += 1;
            let row = Reader::new(&row, format!("row {line} of the lock history")).hinting(HINT);
            take(event(&row, line)?)?;
        }
        Ok(())
    }
}

fn event(row: &Reader<'_>, line: u64) -> Result<Event> {
    let text = |column| {
        let text = row.text(column)?.map(|text| text.trim().to_owned());
        Ok::<_, Error>(text.filter(|text| !text.is_empty()))
    };
    let kind = text("event")?.unwrap_or_default().to_ascii_lowercase();
    let kind: EventKind = kind.parse().map_err(|e| row.bad("event", format!("{kind:?} is {e}")))?;
    let (key, owner, node) = (text("lock_key")?, text("owner")?, text("node")?);
    if kind.needs_key() && key.is_none() {
        return Err(row.bad("lock_key", format!("{kind} needs a key")));
    }
    if kind.needs_owner() && owner.is_none() {
        return Err(row.bad("owner", format!("{kind} needs an owner")));
    }
    let is_pause = kind == EventKind::Pause;
    if is_pause && owner.is_none() && node.is_none() {
        return Err(row.bad("node", "a pause needs an owner or a node"));
    }
    let result = text("result")?;
    let done = match &result {
        None => Some(true),
        Some(result) => Event::is_done(result),
    };
    let lease_ms = row.int_or_null("lease_ms")?;
    let is_unending = !is_pause && matches!(lease_ms, None | Some(-1));
    let lease = lease_ms.filter(|ms| *ms > 0).and_then(|ms| ms.checked_mul(1000)).map(Span::from_micros);
    if lease.is_none() && !is_unending {
        let value = lease_ms.map_or_else(|| "null".to_owned(), |ms| ms.to_string());
        return Err(row.bad("lease_ms", format!("{value} is no number of milliseconds, at least 1")));
    }
    Ok(Event {
        line,
        key: key.unwrap_or_default(),
        kind,
        owner,
        token: row.int_or_null("token")?,
        lease,
        is_forever: lease_ms == Some(-1),
        at: row.time("at_us")?,
        node: node.map(Into::into),
        done: done.ok_or_else(|| {
            row.bad("result", format!("{:?} is neither ok nor refused", result.unwrap_or_default()))
        })?,
    })
}
