//! How much one run of apply may do, as it is typed.

use clap::Args;

use crate::core::limits::{Limits, add_stated};
use crate::error::Result;

#[derive(Args, Clone, Debug, Default)]
pub struct LimitFlags {
    /// Refuse a plan with more steps still to do
    #[arg(long, value_name = "N")]
    max_steps: Option<usize>,
    /// Refuse to give back more of a currency; may be repeated. Once one is stated, a currency without one
    /// is refused
    #[arg(long, value_name = "CUR:AMOUNT")]
    max_refund_total: Vec<String>,
}

impl LimitFlags {
    /// # Errors
    /// Usage, saying how a limit is written.
    pub fn limits(&self) -> Result<Limits> {
        let mut limits = Limits { max_steps: self.max_steps, ..Limits::default() };
        for text in &self.max_refund_total {
            add_stated(&mut limits.max_refunds, text).map_err(|e| e.context("--max-refund-total"))?;
        }
        Ok(limits)
    }
}
