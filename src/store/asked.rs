//! How often services asked `frozen` and were held up: a count, not a record of each.

use super::Store;
use super::rows::Reader;
use super::sql::Values;
use crate::core::freeze::Effect;
use crate::core::time::Timestamp;
use crate::error::Result;

/// How often an effect was held up by a freeze.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub effect: Effect,
    pub times: i64,
    pub last_at: Timestamp,
}

impl Store {
    /// Counts one more answer. Whoever may not write here is answered all the same, and not counted.
    pub async fn count_asked(&self, freeze_id: &str, effect: Effect, now: Timestamp) {
        let values = || {
            Values::new()
                .bind("freeze_id", freeze_id)
                .bind("effect", effect.as_str())
                .bind("now_us", now.micros())
        };
        let journal = self.journal();
        let count = async || -> Result<bool> {
            let add = journal.statement(&self.queries, "asked/add", &values())?;
            if journal.transaction(async |tx| journal.execute(tx, &add).await).await? == 1 {
                return Ok(true);
            }
            let first = journal.statement(&self.queries, "asked/first", &values())?;
            let mut tx = journal.begin().await?;
            let is_first = journal.insert(&mut tx, &first).await?;
            if is_first {
                journal.commit(tx).await?;
            }
            Ok(is_first)
        };
        // Of two who are the first at once, one is told that a count is there by now.
        if !count().await.unwrap_or(true) {
            let _ = count().await;
        }
    }

    /// What a freeze has held up, by effect.
    pub async fn asked(&self, freeze_id: &str) -> Result<Vec<Asked>> {
        let journal = self.journal();
        let values = Values::new().bind("freeze_id", freeze_id);
        let statement = journal.statement(&self.queries, "asked/of_freeze", &values)?;
        let mut connection = journal.connection().await?;
        let rows = journal.fetch(&mut connection, &statement).await?;
        rows.iter()
            .map(|row| {
                let r = Reader::new(row, "onefold_asked");
                Ok(Asked {
                    effect: r.parsed("effect")?,
                    times: r.int("asked")?,
                    last_at: r.time("last_at_us")?,
                })
            })
            .collect()
    }
}
