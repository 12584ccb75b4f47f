//! One intent, one result, proven: the drill in a scratch beside the orders and at a service's door, and the SQL that
//! services paste, on SQLite, PostgreSQL and MariaDB.

mod common;

#[path = "guard/archive.rs"]
mod archive;
#[path = "guard/doors.rs"]
mod doors;
#[path = "guard/drill.rs"]
mod drill;
#[path = "guard/scratches.rs"]
mod scratches;
#[path = "guard/snippets.rs"]
mod snippets;
