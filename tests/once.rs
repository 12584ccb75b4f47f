//! One effect for a key, however often its command is run: the state machine by itself, the records on
//! SQLite, PostgreSQL and MariaDB, and whole processes that are many, stopped, killed and late.

mod common;

#[path = "once/crowd.rs"]
mod crowd;
#[path = "once/digests.rs"]
mod digests;
#[path = "once/gc.rs"]
mod gc;
#[path = "once/kills.rs"]
mod kills;
#[path = "once/leases.rs"]
mod leases;
#[path = "once/machine.rs"]
mod machine;
#[path = "once/model.rs"]
mod model;
#[path = "once/records.rs"]
mod records;
#[path = "once/replay.rs"]
mod replay;
#[path = "once/scene.rs"]
mod scene;
#[path = "once/settling.rs"]
mod settling;
#[path = "once/tiers.rs"]
mod tiers;
#[path = "once/told.rs"]
mod told;
