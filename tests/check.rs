//! `onefold check` on configurations that are good, and on broken ones, each of which must be named
//! precisely: the file, the statement or column, and what to do.

#[path = "check/configuration.rs"]
mod configuration;
#[path = "check/costs.rs"]
mod costs;
#[path = "check/good.rs"]
mod good;
#[path = "check/ledgers.rs"]
mod ledgers;
#[path = "check/moves.rs"]
mod moves;
#[path = "check/site.rs"]
mod site;
#[path = "check/trials.rs"]
mod trials;
