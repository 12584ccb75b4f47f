//! What a report asks beyond the plan: the rows that its steps name, the incident by seconds, the
//! journal page by page, and the key of its pseudonyms.

use std::collections::{BTreeMap, BTreeSet};

use super::journal::{Entry, decode};
use super::rows::{LedgerRow, Reader};
use super::sql::Values;
use super::{BATCH, Store};
use crate::core::charges::captured;
use crate::core::dossier::pseudonyms::{Pseudonyms, RedactKey};
use crate::core::dossier::timeline::Timeline;
use crate::core::ids::*;
use crate::core::ledger::{Hold, Message, Order, Payment};
use crate::core::scope::Scope;
use crate::core::status::PaymentStatus;
use crate::core::time::Timestamp;
use crate::error::{Error, Result};

/// How many entries of the journal are read at once.
const PAGE: i64 = 2000;

impl Store {
    /// Rows of a ledger by their own ids, a batch at a time; one that is gone is left out.
    pub async fn rows_by_ids<'a, T: LedgerRow>(
        &self,
        ids: impl IntoIterator<Item = (&'a TenantId, &'a RowId)>,
        mut take: impl FnMut(T),
    ) -> Result<()> {
        let mut of: BTreeMap<&TenantId, BTreeSet<&RowId>> = BTreeMap::new();
        for (tenant_id, id) in ids {
            of.entry(tenant_id).or_default().insert(id);
        }
        for (tenant_id, ids) in of {
            let ids: Vec<String> = ids.into_iter().map(ToString::to_string).collect();
            for ids in ids.chunks(BATCH) {
                let values = Values::new().bind("tenant_id", tenant_id.as_str()).bind("ids", ids.to_vec());
                self.select::<T>("reads/by_ids", &values).await?.into_iter().for_each(&mut take);
            }
        }
        Ok(())
    }

    /// Orders and captures of a scope by the second, by what its rows say of themselves.
    pub async fn timeline(&self, scope: &Scope) -> Result<Timeline> {
        let mut timeline = Timeline::default();
        let file = "reports/orders_per_second";
        self.each_in_scope::<Order>(file, scope, |r| {
            let source = r.text("source")?.unwrap_or_default();
            let n = u64::try_from(r.int("n")?).unwrap_or(0);
            timeline.orders.entry(source).or_default().add(r.time("second_us")?, n);
            Ok(())
        })
        .await?;
        let file = "reports/payments_per_second";
        self.each_in_scope::<Payment>(file, scope, |r| {
            let status = r.status::<PaymentStatus>(Payment::LEDGER, &self.statuses)?;
            if captured(status) {
                let n = u64::try_from(r.int("n")?).unwrap_or(0);
                timeline.captures.add(r.time("second_us")?, n);
            }
            Ok(())
        })
        .await?;
        Ok(timeline)
    }

    /// Makes the users, sessions and traces known that stand in the rows of a scope.
    pub async fn know_people(&self, scope: &Scope, pseudonyms: &mut Pseudonyms) -> Result<()> {
        let mut know = |r: &Reader<'_>| {
            r.text("user_id")?.iter().for_each(|id| pseudonyms.know_user(id));
            r.text("session_id")?.iter().for_each(|id| pseudonyms.know_session(id));
            Ok(())
        };
        self.each_in_scope::<Order>("reports/people", scope, &mut know).await?;
        self.each_in_scope::<Payment>("reports/people", scope, &mut know).await?;
        self.each_in_scope::<Hold>("reports/people", scope, &mut know).await?;
        self.each_in_scope::<Message>("reports/people", scope, &mut know).await?;
        let mut know = |r: &Reader<'_>| {
            r.text("trace_id")?.iter().for_each(|id| pseudonyms.know_trace(id));
            Ok(())
        };
        self.each_in_scope::<Order>("reports/traces", scope, &mut know).await?;
        self.each_in_scope::<Message>("reports/traces", scope, &mut know).await
    }

    async fn each_in_scope<T: LedgerRow>(
        &self,
        file: &str,
        scope: &Scope,
        mut take: impl FnMut(&Reader<'_>) -> Result<()>,
    ) -> Result<()> {
        let values = in_scope(scope);
        for (_, database) in self.shards(T::LEDGER) {
            let statement = self.ledger_statement::<T>(database, file, &values)?;
            database.each_row(&statement, |row| take(&Reader::new(row, T::LEDGER.as_str()))).await?;
        }
        Ok(())
    }

    /// The journal of a plan and of its freeze from the entry after `after` on, the first page of it;
    /// empty at its end.
    pub async fn journal_page(
        &self,
        plan_id: &str,
        freeze_id: Option<&str>,
        after: i64,
    ) -> Result<Vec<Entry>> {
        let values = Values::new()
            .bind("plan_id", plan_id)
            .bind_when("freeze_id", freeze_id)
            .bind("after", after)
            .bind("page", PAGE);
        let journal = self.journal();
        let statement = journal.statement(&self.queries, "reports/journal", &values)?;
        let mut connection = journal.connection().await?;
        journal.fetch(&mut connection, &statement).await?.iter().map(decode).collect()
    }

    /// The key of pseudonyms that all reports from this journal share; `fresh` becomes it where there is
    /// none yet.
    ///
    /// # Errors
    /// Failure, where what is kept is no key.
    pub async fn redact_key(&self, fresh: &RedactKey) -> Result<RedactKey> {
        if let Some(key) = self.kept_redact_key().await? {
            return Ok(key);
        }
        let journal = self.journal();
        let values = Values::new().bind("value", hex::encode(fresh.0));
        let statement = journal.statement(&self.queries, "reports/keep_key", &values)?;
        let mut connection = journal.connection().await?;
        // Where another was faster, his is the key.
        journal.insert(&mut connection, &statement).await?;
        drop(connection);
        self.kept_redact_key().await?.ok_or_else(|| Error::failure("the key of pseudonyms was not kept"))
    }

    async fn kept_redact_key(&self) -> Result<Option<RedactKey>> {
        let journal = self.journal();
        let statement = journal.statement(&self.queries, "reports/read_key", &Values::new())?;
        let Some(row) = journal.rows_of("onefold_secrets", &statement).await?.into_iter().next() else {
            return Ok(None);
        };
        let text = Reader::new(&row, "onefold_secrets").needed("value")?;
        let bytes = hex::decode(text).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        bytes.map(|bytes| Some(RedactKey(bytes))).ok_or_else(|| {
            Error::failure("the key of pseudonyms in onefold_secrets is not 64 hex digits")
                .hint("somebody changed it; put it back from a backup, or name one in ONEFOLD_REDACT_KEY")
        })
    }
}

/// What narrows a reading to the rows that are in scope by their own columns.
fn in_scope(scope: &Scope) -> Values {
    fn names<T: ToString>(set: &BTreeSet<T>) -> Option<Vec<String>> {
        (!set.is_empty()).then(|| set.iter().map(ToString::to_string).collect())
    }
    Values::new()
        .bind_when("tenants", names(&scope.tenants))
        .bind_when("users", names(&scope.users))
        .bind_when("shows", names(&scope.shows))
        .bind_when("sessions", names(&scope.sessions))
        .bind_when("from_us", scope.from.map(Timestamp::micros))
        .bind_when("to_us", scope.to.map(Timestamp::micros))
}
