//! Reports that leave: each format in a file of its own, all from one [`Dossier`].

mod csv;
mod html;
mod json;
mod over;
mod sums;
mod target;
mod xlsx;

pub use csv::{Csv, OneSheet};
pub use html::{Html, Limits};
pub use json::Json;
pub use over::{Kind, must_be_free};
pub use target::Target;
pub use xlsx::{ROWS_A_SHEET, Xlsx};

use crate::core::dossier::Dossier;
use crate::core::dossier::sheets::Cell;
use crate::error::Result;

/// A report that is being written. What the plan says is written when it is begun; the journal comes
/// after it, page by page.
pub trait Export {
    /// Adds entries of the journal, as many cells each as the sheet has columns.
    ///
    /// # Errors
    /// What cannot be written.
    fn journal(&mut self, entry: &[Cell<'_>]) -> Result<()>;

    /// Writes what is left; what is then there is whole.
    ///
    /// # Errors
    /// What cannot be written.
    fn end(self: Box<Self>, dossier: &Dossier<'_>) -> Result<Written>;
}

/// What a report holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// How many rows each sheet has.
    pub rows: Vec<(&'static str, u64)>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// `1 row`, `2 rows`.
fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
