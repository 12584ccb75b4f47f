//! A freeze that holds, on SQLite, PostgreSQL and MariaDB: services that never heard of onefold write
//! plain SQL, and the database refuses what is frozen, and nothing else.

mod common;

#[path = "enforce/apart.rs"]
mod apart;
#[path = "enforce/cost.rs"]
mod cost;
#[path = "enforce/hammer.rs"]
mod hammer;
#[path = "enforce/install.rs"]
mod install;
#[path = "enforce/lease.rs"]
mod lease;
#[path = "enforce/modes.rs"]
mod modes;
#[path = "enforce/passes.rs"]
mod passes;
#[path = "enforce/refusals.rs"]
mod refusals;
#[path = "enforce/scopes.rs"]
mod scopes;
#[path = "enforce/service.rs"]
mod service;
