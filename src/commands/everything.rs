//! Deciding from every row there is, of files or of databases: purchases that are plain are decided once a kind, and of
//! the others are read the rows that tell.

use super::new_id;
use super::progress::Progress;
use crate::config::Config;
use crate::core::evidence::Evidence;
use crate::core::freeze::Freeze;
use crate::core::plain::{Basis, Listing, Planned};
use crate::core::plan::PlanError;
use crate::core::scope::Scope;
use crate::core::status::Ledger;
use crate::core::time::Timestamp;
use crate::error::Result;
use crate::files::{Origin, Portions, READ_ORDER, ReadOptions, Sifted, StatusMap, sift};
use crate::store::Store;

/// The plan of what was sifted, with plain purchases decided once a kind; nothing where a file has changed meanwhile.
pub fn decided(
    config: &Config,
    sifted: &Sifted<'_>,
    scope: &Scope,
    listing: Listing,
    made_at: Timestamp,
) -> Option<Result<Planned, PlanError>> {
    let progress = Progress::new(config, "deciding");
    let planned = sifted.plan(scope, listing, new_id("PL"), made_at);
    progress.end();
    planned
}

/// Whether a scope is decided sooner from every row of the databases than from its own; of a narrowed freeze, what is held
/// is looked for intent by intent.
pub async fn is_quick(store: &Store, scope: &Scope, freeze: Option<&Freeze>) -> Result<bool> {
    let is_whole = freeze.is_none_or(|f| f.narrowed_to.is_none());
    Ok(is_whole && (scope.is_everything() || store.is_large(scope).await?))
}

/// The plan of a scope from every row of the databases; nothing where they must be read row by row.
pub async fn from_everything(
    config: &Config,
    store: &Store,
    scope: &Scope,
    basis: impl FnOnce(Evidence) -> Result<Basis>,
    listing: Listing,
    made_at: Timestamp,
) -> Result<Option<Planned>> {
    let Some(export) = store.export(READ_ORDER).await else { return Ok(None) };
    // Read after the ledgers' moment: whatever a ledger shows of our doing, the journal then tells.
    let basis = basis(store.evidence().await?)?;
    let of = |ledger| {
        let names = store.statuses.names(ledger);
        names.map(move |(theirs, ours)| StatusMap { ledger, theirs: theirs.to_owned(), ours })
    };
    let status_map = Ledger::ALL.into_iter().flat_map(of).collect();
    let options = ReadOptions { from_database: true, status_map, ..ReadOptions::default() };
    let progress = Progress::new(config, "reading");
    let mut next = || export.next();
    let sifted = sift(Origin::Database(&mut next), &options, &basis, Portions::default(), &|ledger, rows| {
        progress.more_rows(ledger, rows)
    });
    progress.end();
    export.end()?;
    Ok(sifted.and_then(|sifted| decided(config, &sifted, scope, listing, made_at)).transpose()?)
}
