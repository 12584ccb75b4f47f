//! The pure core: no database, clock, environment, randomness or printing. What it needs of
//! these comes in as arguments, so the same rows always give the same decision.

pub mod evidence;
pub mod ids;
pub mod ledger;
pub mod money;
pub mod plan;
pub mod policy;
pub mod scope;
pub mod status;
pub mod time;
