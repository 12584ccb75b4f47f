//! What happens when apply is killed, contended, answered badly or overtaken, at any moment: every
//! effect once, nothing lost, and nothing done about rows that are not as planned.

mod common;

#[path = "faults/answers.rs"]
mod answers;
#[path = "faults/breaks.rs"]
mod breaks;
#[path = "faults/changes.rs"]
mod changes;
#[path = "faults/connections.rs"]
mod connections;
#[path = "faults/dead_ends.rs"]
mod dead_ends;
#[path = "faults/kills.rs"]
mod kills;
#[path = "faults/many.rs"]
mod many;
#[path = "faults/mixed.rs"]
mod mixed;
#[path = "faults/providers.rs"]
mod providers;
#[path = "faults/rivals.rs"]
mod rivals;
#[path = "faults/scene.rs"]
mod scene;
#[path = "faults/slow.rs"]
mod slow;
#[path = "faults/superseded.rs"]
mod superseded;
