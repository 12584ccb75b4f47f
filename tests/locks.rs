//! Lock histories: schedules with injected faults are classified as injected; files are read or refused by
//! line; what the ledgers have twice is joined; and a real Redis shows what a bare DEL does.

#[path = "locks/audit.rs"]
mod audit;
#[path = "common/mod.rs"]
mod common;
#[path = "locks/input.rs"]
mod input;
#[path = "locks/judged.rs"]
mod judged;
#[path = "locks/redis.rs"]
mod redis;
#[path = "locks/rules.rs"]
mod rules;
#[path = "locks/schedules.rs"]
mod schedules;
#[path = "locks/story.rs"]
mod story;
