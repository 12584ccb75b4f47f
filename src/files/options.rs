//! What a person says about files that are not as the contract has them. Each part is read from
//! the text of its flag.

use std::fmt;
use std::str::FromStr;

use chrono_tz::Tz;

use super::table::columns;
use crate::core::status::{HoldStatus, Ledger, MessageStatus, OrderStatus, PaymentStatus};

/// How the files are to be read. The default reads what [`super::write`] writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    pub encoding: Encoding,
    /// The zone of times that have no offset; without it they are refused.
    pub timezone: Option<Tz>,
    pub amounts: Amounts,
    /// Drop the blanks around ids and other compared texts, for exports that pad them.
    pub trim_ids: bool,
    /// Take ids as they are that look as if a tool had changed them, but need not have been.
    pub accept_ids: bool,
    /// Names that columns have in the files.
    pub map: Vec<ColumnMap>,
    /// Names that statuses have in the files.
    pub status_map: Vec<StatusMap>,
    /// The cells are a database's own, and are read as the store reads its rows: null (nothing at all) and an empty
    /// text (two quotation marks) differ, nothing is trimmed, ids are taken as they are, times are microseconds since
    /// 1970, and a status that `status_map` leaves out is unknown where it names others of the ledger. There is no
    /// header: the contract's columns stand in its order, and behind them the row's shard.
    pub from_database: bool,
}

/// The text of an option names nothing that there is; says what there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadOption(pub(super) String);

impl fmt::Display for BadOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadOption {}

/// How characters stand in a file. A byte order mark is believed before this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// By the byte order mark; without one, UTF-8 that must be valid.
    #[default]
    Auto,
    Utf8,
    /// Little or big endian, as the byte order mark says, which must be there.
    Utf16,
    Utf16Le,
    Utf16Be,
    /// Contains GBK and GB2312.
    Gb18030,
}

impl Encoding {
    pub const NAMES: [&str; 6] = ["auto", "utf-8", "utf-16", "utf-16le", "utf-16be", "gb18030"];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Utf16Le => "utf-16le",
            Self::Utf16Be => "utf-16be",
            Self::Gb18030 => "gb18030",
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Encoding {
    type Err = BadOption;

    fn from_str(text: &str) -> Result<Self, BadOption> {
        match text.to_ascii_lowercase().as_str() {
            "auto" => Ok(Self::Auto),
            "utf-8" | "utf8" => Ok(Self::Utf8),
            "utf-16" | "utf16" => Ok(Self::Utf16),
            "utf-16le" | "utf16le" => Ok(Self::Utf16Le),
            "utf-16be" | "utf16be" => Ok(Self::Utf16Be),
            "gb18030" | "gbk" | "gb2312" => Ok(Self::Gb18030),
            _ => Err(BadOption(format!("no encoding {text:?}; known are {}", Self::NAMES.join(", ")))),
        }
    }
}

/// How amounts are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Amounts {
    /// Integers in the currency's minor unit: `1250` is 12.50 EUR.
    #[default]
    Minor,
    /// Major units with a decimal point, thousands marked by commas or not at all: `1,012.50`.
    Decimal,
    /// Major units with a decimal comma, thousands marked by points, blanks or apostrophes: `1.012,50`.
    DecimalComma,
}

impl Amounts {
    pub const NAMES: [&str; 3] = ["minor", "decimal", "decimal-comma"];
}

impl FromStr for Amounts {
    type Err = BadOption;

    fn from_str(text: &str) -> Result<Self, BadOption> {
        match text {
            "minor" => Ok(Self::Minor),
            "decimal" => Ok(Self::Decimal),
            "decimal-comma" => Ok(Self::DecimalComma),
            _ => Err(BadOption(format!(
                "cannot read amounts as {text:?}; known are {}",
                Self::NAMES.join(", ")
            ))),
        }
    }
}

/// `[LEDGER.]THEIRS=OURS`: the file's column THEIRS is the contract's column OURS. Without a ledger
/// it holds for each file that has the one and each ledger that has the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnMap {
    pub ledger: Option<Ledger>,
    pub theirs: String,
    /// A column of the contract.
    pub ours: &'static str,
}

impl FromStr for ColumnMap {
    type Err = BadOption;

    fn from_str(text: &str) -> Result<Self, BadOption> {
        let (ledger, theirs, ours) = split_map(text, "order_no=order_id")?;
        let known = |ledger: Ledger| columns(ledger).iter().map(|c| c.name).find(|name| *name == ours);
        let found = match ledger {
            Some(ledger) => known(ledger),
            None => Ledger::ALL.into_iter().find_map(known),
        };
        let ours = found.ok_or_else(|| match ledger {
            Some(ledger) => {
                let names: Vec<_> = columns(ledger).iter().map(|c| c.name).collect();
                BadOption(format!("{ledger} has no column {ours:?}; it has {}", names.join(", ")))
            }
            None => BadOption(format!("no ledger has a column {ours:?}; write THEIR_NAME=OUR_NAME")),
        })?;
        Ok(Self { ledger, theirs: theirs.to_owned(), ours })
    }
}

impl fmt::Display for ColumnMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ledger) = self.ledger {
            write!(f, "{ledger}.")?;
        }
        write!(f, "{}={}", self.theirs, self.ours)
    }
}

/// `LEDGER.THEIRS=OURS`: the file's status THEIRS is the contract's status OURS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusMap {
    pub ledger: Ledger,
    pub theirs: String,
    /// A status of the ledger's machine.
    pub ours: &'static str,
}

impl FromStr for StatusMap {
    type Err = BadOption;

    fn from_str(text: &str) -> Result<Self, BadOption> {
        let (ledger, theirs, ours) = split_map(text, "orders.settled=PAID")?;
        let ledger = ledger
            .ok_or_else(|| BadOption(format!("{text:?} names no ledger; write for example orders.{text}")))?;
        let names = status_names(ledger);
        let ours = *names.iter().find(|name| **name == ours).ok_or_else(|| {
            BadOption(format!("{ledger} has no status {ours:?}; it has {}", names.join(", ")))
        })?;
        Ok(Self { ledger, theirs: theirs.to_owned(), ours })
    }
}

impl fmt::Display for StatusMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}={}", self.ledger, self.theirs, self.ours)
    }
}

/// The statuses of a ledger's machine (contract, section 1).
fn status_names(ledger: Ledger) -> &'static [&'static str] {
    match ledger {
        Ledger::Orders => OrderStatus::NAMES,
        Ledger::Payments => PaymentStatus::NAMES,
        Ledger::Inventory => HoldStatus::NAMES,
        Ledger::Messages => MessageStatus::NAMES,
    }
}

/// `[LEDGER.]THEIRS=OURS` in its parts. Our names hold no `=`, theirs may.
fn split_map<'a>(text: &'a str, example: &str) -> Result<(Option<Ledger>, &'a str, &'a str), BadOption> {
    let bad = || BadOption(format!("{text:?} is not THEIRS=OURS, such as {example}"));
    let (left, ours) = text.rsplit_once('=').ok_or_else(bad)?;
    let qualified = left.split_once('.').and_then(|(l, rest)| Some((l.trim().parse().ok()?, rest)));
    let (ledger, theirs) = match qualified {
        Some((ledger, theirs)) => (Some(ledger), theirs),
        None => (None, left),
    };
    let (theirs, ours) = (theirs.trim(), ours.trim());
    if theirs.is_empty() || ours.is_empty() { Err(bad()) } else { Ok((ledger, theirs, ours)) }
}
