//! The store: one suite, each test of which runs on SQLite, PostgreSQL and MariaDB.

mod common;

#[path = "store/chain.rs"]
mod chain;
#[path = "store/clashes.rs"]
mod clashes;
#[path = "store/exports.rs"]
mod exports;
#[path = "store/freezes.rs"]
mod freezes;
#[path = "store/import.rs"]
mod import;
#[path = "store/journal.rs"]
mod journal;
#[path = "store/moves.rs"]
mod moves;
#[path = "store/queries.rs"]
mod queries;
#[path = "store/scopes.rs"]
mod scopes;
#[path = "store/steps.rs"]
mod steps;
