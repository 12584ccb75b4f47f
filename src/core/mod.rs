//! The pure core: no database, clock, environment, randomness or printing. What it needs of
//! these comes in as arguments, so the same rows always give the same decision.

pub mod canonical;
pub mod charges;
pub mod decide;
pub mod dossier;
pub mod evidence;
pub mod explain;
pub mod facts;
pub mod findings;
pub mod freeze;
pub mod hash;
pub mod idempotency;
pub mod ids;
pub mod intents;
pub mod join;
pub mod ledger;
pub mod limits;
pub mod money;
pub mod orphans;
pub mod output;
pub mod plan;
pub mod policy;
pub mod recheck;
pub mod scope;
pub mod seen;
pub mod status;
pub mod steps;
pub mod sums;
pub mod time;
pub mod verify;
pub mod words;
