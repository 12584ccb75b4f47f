//! The contract's rules, each as a small ledger and what must come of it. A file per section.

#[path = "../common/mod.rs"]
mod common;

mod approval;
mod chain;
mod doubts;
mod facts;
mod findings;
mod intents;
mod orphans;
mod plan;
mod recheck;
mod statement;
mod steps;
mod table;
mod verify;
