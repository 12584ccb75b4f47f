//! onefold finds the orders that retries made out of one purchase, keeps one and unwinds the rest.
//!
//! The flow is the architecture:
//!
//! ```text
//! freeze -> join -> decide -> plan -> apply <-> converge -> verify -> thaw
//! ```
//!
//! - [`core`] decides, and is pure: rows in, plan out.

pub mod core;
pub mod error;
