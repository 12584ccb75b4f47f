//! Where duplicates came from: what came, what each left, what guards would have stopped, what hops hand on,
//! what was delivered twice, and which shape it has over time.

mod common;

#[path = "trace/arrivals.rs"]
mod arrivals;
#[path = "trace/files.rs"]
mod files;
#[path = "trace/generated.rs"]
mod generated;
#[path = "trace/guards.rs"]
mod guards;
#[path = "trace/hops.rs"]
mod hops;
#[path = "trace/matching.rs"]
mod matching;
#[path = "trace/queue.rs"]
mod queue;
#[path = "trace/scene.rs"]
mod scene;
#[path = "trace/shapes.rs"]
mod shapes;
