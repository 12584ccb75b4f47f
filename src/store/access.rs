//! An access log that lies in a table, read through a SELECT of the site's: `ledgers/access.sql` in its own
//! folder of queries. There is none of ours, since no ledger is one.

use futures_util::TryStreamExt as _;

use super::Store;
use super::rows::Reader;
use super::sql::{Statement, Values, statements};
use crate::core::ids::{DEFAULT_TENANT, TenantId};
use crate::core::status::Ledger;
use crate::core::time::{Span, Timestamp};
use crate::core::trace::access::AccessLine;
use crate::error::{Error, Result};

/// The site's SELECT.
pub const ACCESS: &str = "ledgers/access";

impl Store {
    /// Whether the site says where its access log is.
    pub fn has_access_log(&self) -> bool {
        self.queries.find(ACCESS).is_some()
    }

    /// The lines of a time, one by one, from each database of the order ledger. The site's SELECT stands within
    /// ours, so it can change nothing.
    ///
    /// # Errors
    /// Usage, where it is not one SELECT, or a row is no line of a log.
    pub async fn each_access_line(
        &self,
        (from, to): (Timestamp, Timestamp),
        mut take: impl FnMut(AccessLine),
    ) -> Result<()> {
        let Some(text) = self.queries.find(ACCESS) else { return Ok(()) };
        let [select] = statements(text)[..] else {
            return Err(Error::usage(format!("{ACCESS}.sql is not one SELECT"))
                .hint("SELECT … AS at_us, … AS request_id, … FROM …, without a semicolon inside"));
        };
        let access = format!("(\n{select}\n) AS access");
        let values = Values::new().bind("from_us", from.micros()).bind("to_us", to.micros());
        for (_, database) in self.shards(Ledger::Orders) {
            let text = self.queries.get("trace/access")?;
            let statement = Statement::new(text, &[("access", &access)], &values, database.dialect)
                .map_err(|e| e.context(format!("{ACCESS}.sql")))?;
            let mut connection = database.connection().await?;
            let mut rows = database.stream(&mut connection, &statement);
            let mut number = 0;
            while let Some(row) = rows.try_next().await.map_err(|e| {
                e.context(format!("{ACCESS}.sql"))
                    .hint("it gives the columns that `onefold trace --help` lists")
            })? {
                number += 1;
                take(line(&Reader::new(&row, format!("line {number} of {ACCESS}.sql")))?);
            }
        }
        Ok(())
    }
}

fn line(row: &Reader<'_>) -> Result<AccessLine> {
    let text = |column| row.text(column).map(|text| text.filter(|text| !text.trim().is_empty()));
    let needed = |column| text(column)?.ok_or_else(|| row.bad(column, "is null or blank"));
    let at_least = |column, least: i64| match row.int_or_null(column)? {
        Some(n) if n < least => Err(row.bad(column, format!("{n} is less than {least}"))),
        n => Ok(n),
    };
    Ok(AccessLine {
        at: row.time("at_us")?,
        tenant_id: text("tenant_id")?.map_or_else(|| TenantId::from(DEFAULT_TENANT), TenantId::from),
        request_id: needed("request_id")?,
        source: needed("source")?,
        attempt: at_least("attempt", 1)?.unwrap_or(1),
        status: at_least("status", 0)?.filter(|status| *status > 0),
        latency: at_least("latency_ms", 0)?.map(|ms| Span::from_micros(ms.saturating_mul(1000))),
        trace_id: text("trace_id")?,
        idempotency_key: text("idempotency_key")?.map(Into::into),
        user_id: text("user_id")?.map(Into::into),
        show_id: text("show_id")?.map(Into::into),
        order_id: text("order_id")?.map(Into::into),
    })
}
