//! The journal as evidence: runs are ended by heads, and all of it is walked and given out
//! (`core/chain.rs`). What is read is streamed, since a journal only grows.

use futures_util::{StreamExt as _, TryStreamExt as _};
use serde_json::{Map, Value as Json, json};
use sqlx::any::AnyRow;

use super::journal::{Entry, Event};
use super::rows::Reader;
use super::sql::Values;
use super::{Connection, Database, Queries, Store, Transaction};
use crate::core::chain::{Content, ENDED, Found, Head, Link, Misfit, Tip, Verified, Walk, entry_hash};
use crate::core::time::Timestamp;
use crate::error::Result;

/// The numbers among what an entry says.
const NUMBERS: [&str; 2] = ["at_us", "amount_minor"];

impl Database {
    /// Ends every chain that this run has written to. Without this a run counts as killed.
    pub async fn end_run(&self, actor: &str, now: Timestamp) -> Result<()> {
        let chains = self.chains.take_all();
        self.end_chains(&chains, &Entry::new(Event::Ended, actor, now)).await.map(drop)
    }

    /// Gives each chain its last entry and a head. That entry takes the place of the one that would
    /// come next, so a run that is still at it finds its chain ended and begins another: this is safe
    /// whoever's the chains are. Returns how many were not ended before.
    async fn end_chains(&self, chains: &[String], end: &Entry) -> Result<usize> {
        if chains.is_empty() {
            return Ok(0);
        }
        self.transaction(async |tx| {
            let mut open = Vec::new();
            for chain in chains {
                open.extend(self.open_tip(tx, chain).await?);
            }
            for tip in &open {
                self.end_chain(tx, tip, end).await?;
            }
            Ok(open.len())
        })
        .await
    }

    async fn end_chain(&self, tx: &mut Transaction, tip: &Tip, end: &Entry) -> Result<()> {
        let queries = Queries::default();
        self.execute(tx, &self.statement(&queries, "journal/count_head", &Values::new())?).await?;
        let link = tip.next(&end.content());
        if !self.write_entries(tx, &[(end, link.clone())]).await? {
            let chain = &tip.chain;
            return Err(crate::error::Error::clash(format!("the journal's chain {chain} goes on")));
        }
        let at = end.at.unwrap_or(Timestamp::from_micros(0));
        let newest = self.newest_head(tx).await?;
        let head = Head::after(newest.as_ref(), &Tip::from(link), at, &end.actor);
        let values = Values::new()
            .bind("position", head.position)
            .bind("previous_hash", head.previous_hash)
            .bind("hash", head.hash)
            .bind("chain", head.chain)
            .bind("last_position", head.last_position)
            .bind("last_hash", head.last_hash)
            .bind("at_us", head.at.micros())
            .bind("actor", head.actor);
        self.execute(tx, &self.statement(&queries, "journal/add_head", &values)?).await.map(drop)
    }

    /// Where a chain ends; `None` where it has no entry, or its last one ends it.
    async fn open_tip(&self, on: &mut Connection, chain: &str) -> Result<Option<Tip>> {
        let values = Values::new().bind("chain", chain);
        let rows = self.fetch(on, &self.statement(&Queries::default(), "journal/tip", &values)?).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let r = Reader::new(row, "journal");
        let tip = Tip { chain: r.needed("chain")?, position: r.int("position")?, hash: r.needed("hash")? };
        Ok((r.needed("event")? != ENDED).then_some(tip))
    }

    async fn newest_head(&self, on: &mut Connection) -> Result<Option<Head>> {
        let statement = self.statement(&Queries::default(), "journal/newest_head", &Values::new())?;
        self.fetch(on, &statement).await?.first().map(head).transpose()
    }
}

impl Store {
    /// The heads of the runs that have ended and have told of a plan, in the order of their ends.
    pub async fn heads_of_plan(&self, plan_id: &str) -> Result<Vec<Head>> {
        self.heads(&Values::new().bind("plan_id", plan_id)).await
    }

    async fn heads(&self, values: &Values) -> Result<Vec<Head>> {
        let journal = self.journal();
        let mut connection = journal.connection().await?;
        let statement = journal.statement(&self.queries, "journal/heads", values)?;
        journal.fetch(&mut connection, &statement).await?.iter().map(head).collect()
    }

    /// Ends the chains of runs that left no end, because they were killed. One that is still at it begins
    /// another. Returns how many.
    pub async fn end_killed_runs(&self, actor: &str, now: Timestamp) -> Result<usize> {
        let journal = self.journal();
        let statement = journal.statement(&self.queries, "journal/chains_without_head", &Values::new())?;
        let mut connection = journal.connection().await?;
        let rows = journal.fetch(&mut connection, &statement).await?;
        drop(connection);
        let end = Entry::new(Event::Ended, actor, now).note("its run left no end, and another ended it");
        let mut ended = 0;
        for row in &rows {
            let chain = Reader::new(row, "journal").needed("chain")?;
            ended += journal.end_chains(&[chain], &end).await?;
        }
        Ok(ended)
    }

    /// Walks all of the journal; `seen` is told how many entries it has passed. What is written meanwhile
    /// counts as of runs that go on.
    pub async fn verify_journal(&self, mut seen: impl FnMut(i64)) -> Result<Verified> {
        let journal = self.journal();
        let mut walk = Walk::default();
        let up_to = self.verify_heads(&mut walk).await?;
        self.verify_not_chained(&mut walk).await?;

        let by_chain = Values::new().bind("up_to", up_to);
        let by_chain = journal.statement(&self.queries, "journal/heads_by_chain", &by_chain)?;
        let mut beside = journal.connection().await?;
        let heads = journal.stream(&mut beside, &by_chain).map(|row| head(&row?));
        let mut heads = std::pin::pin!(heads);
        let mut next = heads.try_next().await?;

        let chained = journal.statement(&self.queries, "journal/chained", &Values::new())?;
        let mut connection = journal.connection().await?;
        let mut rows = journal.stream(&mut connection, &chained);
        loop {
            let entry = rows.try_next().await?.map(|row| found(&row)).transpose()?;
            if let Some(chain) = walk.chain().map(str::to_owned)
                && entry.as_ref().is_none_or(|entry| entry.link.chain != chain)
            {
                while let Some(gone) = next.take_if(|head| head.chain < chain) {
                    walk.gone(&gone);
                    next = heads.try_next().await?;
                }
                let mut its_own = next.take_if(|head| head.chain == chain);
                if its_own.is_some() {
                    next = heads.try_next().await?;
                } else if walk.is_ended() {
                    // It may have been ended since.
                    its_own = self.heads(&Values::new().bind("chain", chain)).await?.pop();
                }
                walk.close(its_own.as_ref());
            }
            let Some(entry) = entry else { break };
            walk.entry(entry);
            seen(walk.verified.entries);
        }
        while let Some(gone) = next {
            walk.gone(&gone);
            next = heads.try_next().await?;
        }
        drop(rows);
        self.verify_told(&mut connection, &mut walk).await?;
        walk.verified.triggers_missing = self.missing_triggers().await?;
        Ok(walk.verified)
    }

    /// Holds what else onefold keeps against the entries: a run that is gone whole with its head leaves no hole in
    /// the journal, but plans and steps without an entry.
    async fn verify_told(&self, on: &mut Connection, walk: &mut Walk) -> Result<()> {
        let journal = self.journal();
        let statement = journal.statement(&self.queries, "journal/untold", &Values::new())?;
        for row in journal.fetch(on, &statement).await? {
            let r = Reader::new(&row, "journal/untold");
            walk.verified.misfit(Misfit::untold(format!("{} {}", r.needed("kind")?, r.needed("id")?)));
        }
        Ok(())
    }

    /// The triggers that ought to keep the journal as it is and are missing, disabled, or not to be seen by this
    /// user.
    pub async fn missing_triggers(&self) -> Result<Vec<String>> {
        let journal = self.journal();
        let file = format!("journal/{}/missing_triggers", journal.dialect.folder());
        let statement = journal.statement(&self.queries, &file, &Values::new())?;
        let mut connection = journal.connection().await?;
        let rows = journal.fetch(&mut connection, &statement).await?;
        rows.iter().map(|row| Reader::new(row, &file).needed("name")).collect()
    }

    /// Walks the heads; how many there must be.
    async fn verify_heads(&self, walk: &mut Walk) -> Result<i64> {
        let journal = self.journal();
        let mut connection = journal.connection().await?;
        // In this order: whoever ends a run meanwhile counts it first.
        let newest = journal.newest_head(&mut connection).await?.map_or(0, |head| head.position);
        let statement = journal.statement(&self.queries, "journal/heads_counted", &Values::new())?;
        let rows = journal.fetch(&mut connection, &statement).await?;
        let counted = rows.first().map_or(Ok(0), |row| Reader::new(row, "onefold_counters").int("value"))?;
        let values = Values::new().bind("up_to", counted);
        let statement = journal.statement(&self.queries, "journal/heads", &values)?;
        let mut rows = journal.stream(&mut connection, &statement);
        while let Some(row) = rows.try_next().await? {
            walk.head(head(&row)?);
        }
        let last = walk.verified.newest_head.as_ref().map_or(0, |head| head.position);
        let why = if newest > counted {
            Some(format!("{counted} heads were counted, and this one is there"))
        } else if last < counted {
            Some(format!("heads are missing: {counted} were written, and the last one there is {last}"))
        } else {
            None
        };
        if let Some(why) = why {
            let position = newest.max(counted);
            walk.verified.misfit(Misfit::head(position, why));
        }
        Ok(counted)
    }

    /// Counts the entries from before there were chains; none may come after one that has a chain.
    async fn verify_not_chained(&self, walk: &mut Walk) -> Result<()> {
        let journal = self.journal();
        let mut connection = journal.connection().await?;
        let statement = journal.statement(&self.queries, "journal/chained_from", &Values::new())?;
        let rows = journal.fetch(&mut connection, &statement).await?;
        let from = rows.first().map_or(Ok(None), |row| Reader::new(row, "journal").int_or_null("seq"))?;
        let statement = journal.statement(&self.queries, "journal/not_chained", &Values::new())?;
        let mut rows = journal.stream(&mut connection, &statement);
        while let Some(row) = rows.try_next().await? {
            let seq = Reader::new(&row, "journal").int("seq")?;
            walk.verified.not_chained += 1;
            let is_later = from.filter(|from| seq > *from);
            if is_later.is_some() || seq <= 0 {
                let before = is_later.map(|from| format!(", though entry {from} before it does"));
                let why = format!(
                    "it stands in no chain{}: it was written by hand, or by an older onefold",
                    before.unwrap_or_default()
                );
                walk.verified.misfit(Misfit::entry(None, 0, Some(seq), why));
            }
        }
        Ok(())
    }

    /// Whether a head with this hash is there.
    pub async fn has_head(&self, hash: &str) -> Result<bool> {
        let journal = self.journal();
        let mut connection = journal.connection().await?;
        let statement =
            journal.statement(&self.queries, "journal/head_by_hash", &Values::new().bind("hash", hash))?;
        Ok(!journal.fetch(&mut connection, &statement).await?.is_empty())
    }

    /// Gives out the journal and then its heads, an object each, and how many there are of both.
    pub async fn export_journal(&self, mut write: impl FnMut(&Json) -> Result<()>) -> Result<(i64, i64)> {
        let journal = self.journal();
        let mut connection = journal.connection().await?;
        let (mut entries, mut heads) = (0, 0);
        for file in ["journal/not_chained", "journal/chained"] {
            let statement = journal.statement(&self.queries, file, &Values::new())?;
            let mut rows = journal.stream(&mut connection, &statement);
            while let Some(row) = rows.try_next().await? {
                write(&entry_json(&row)?)?;
                entries += 1;
            }
        }
        let statement = journal.statement(&self.queries, "journal/heads", &Values::new())?;
        let mut rows = journal.stream(&mut connection, &statement);
        while let Some(row) = rows.try_next().await? {
            let head = head(&row)?;
            write(&json!({
                "head": head.position, "previous_hash": head.previous_hash, "hash": head.hash,
                "chain": head.chain, "last_position": head.last_position, "last_hash": head.last_hash,
                "at_us": head.at.micros(), "actor": head.actor,
            }))?;
            heads += 1;
        }
        Ok((entries, heads))
    }
}

/// What a row says, in the order in which it is hashed.
fn content(row: &AnyRow) -> Result<Content> {
    let r = Reader::new(row, "journal");
    let names = Entry::default().content().into_iter().map(|(name, _)| name);
    let value = |name: &str| {
        if NUMBERS.contains(&name) { Ok(r.int_or_null(name)?.map(|n| n.to_string())) } else { r.text(name) }
    };
    names.map(|name| Ok((name, value(name)?))).collect()
}

fn found(row: &AnyRow) -> Result<Found> {
    let r = Reader::new(row, "journal");
    let link = Link {
        chain: r.needed("chain")?,
        position: r.int_or_null("position")?.unwrap_or_default(),
        previous_hash: r.text("previous_hash")?.unwrap_or_default(),
        hash: r.text("hash")?.unwrap_or_default(),
    };
    // What cannot even be read fits no hash.
    let said = content(row).ok();
    let computed = said.map(|said| entry_hash(&link.chain, link.position, &link.previous_hash, &said));
    Ok(Found {
        seq: r.int("seq")?,
        computed: computed.unwrap_or_default(),
        is_end: r.text("event").ok().flatten().as_deref() == Some(ENDED),
        at: r.time_or_null("at_us").ok().flatten(),
        actor: r.text("actor").ok().flatten().unwrap_or_default(),
        link,
    })
}

fn entry_json(row: &AnyRow) -> Result<Json> {
    let r = Reader::new(row, "journal");
    let mut object = Map::new();
    for name in ["seq", "position"].iter().chain(&NUMBERS) {
        object.insert((*name).to_owned(), json!(r.int_or_null(name)?));
    }
    for name in ["chain", "previous_hash", "hash"] {
        object.insert(name.to_owned(), json!(r.text(name)?));
    }
    for (name, text) in content(row)?.into_iter().filter(|(name, _)| !NUMBERS.contains(name)) {
        object.insert(name.to_owned(), json!(text));
    }
    Ok(Json::Object(object))
}

fn head(row: &AnyRow) -> Result<Head> {
    let r = Reader::new(row, "onefold_heads");
    Ok(Head {
        position: r.int("position")?,
        previous_hash: r.needed("previous_hash")?,
        hash: r.needed("hash")?,
        chain: r.needed("chain")?,
        last_position: r.int("last_position")?,
        last_hash: r.needed("last_hash")?,
        at: r.time("at_us")?,
        actor: r.needed("actor")?,
    })
}
