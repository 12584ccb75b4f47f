//! onefold finds the orders that retries made out of one purchase, keeps one and unwinds the rest.
//!
//! The flow is the architecture:
//!
//! ```text
//! freeze -> join -> decide -> plan -> apply <-> converge -> verify -> thaw
//! ```
//!
//! - [`core`] decides, and is pure: rows in, plan out.
//! - [`store`] is the only user of databases; [`files`] reads and writes CSV.
//! - [`providers`] move money; [`execute`] carries a plan out by the step protocol.
//! - [`check`] proves a configuration before it is needed.
//! - [`trials`] try on a real Redis how locks are released and tokens taken.
//! - [`commands`] are the verbs, [`report`] prints what they found, [`cli`] binds them together.

pub mod check;
pub mod cli;
pub mod commands;
pub mod config;
pub mod core;
pub mod error;
pub mod execute;
pub mod files;
pub mod program;
pub mod providers;
pub mod report;
mod signals;
pub mod store;
pub mod trials;
