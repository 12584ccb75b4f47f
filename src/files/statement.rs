//! A provider's settlement file: its lines one by one, since it may be large.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use chrono_tz::Tz;

use super::amount::amount;
use super::cells::{instant, trim};
use super::faults::{Faults, FileFaults, Place, Problem, Quoted};
use super::lines::{Names, TOLD_EVERY, ended, header};
use super::options::{Amounts, BadOption, Encoding};
use super::read::open;
use super::records::Record;
use crate::core::money::Currency;
use crate::core::statement::{Line, LineType};
use crate::core::status::status_type;
use crate::core::time::Timestamp;

status_type!(
    /// What a column of a statement holds.
    StatementColumn {
        /// The provider's name of the charge, also on its refunds.
        Charge = "charge",
        Amount = "amount",
        Currency = "currency",
        /// Charge or refund; without it, what is below 0 is a refund.
        Type = "type",
        /// When it happened.
        Time = "time",
    }
);

/// `OURS=THEIRS` or `THEIRS=OURS`: which column of the file holds what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementMap {
    pub ours: StatementColumn,
    pub theirs: String,
}

impl FromStr for StatementMap {
    type Err = BadOption;

    fn from_str(text: &str) -> Result<Self, BadOption> {
        let names = StatementColumn::NAMES.join(", ");
        let Some((left, right)) = text.split_once('=').map(|(l, r)| (l.trim(), r.trim())) else {
            return Err(BadOption(format!("{text:?} is not OURS=THEIRS, such as charge=Reference")));
        };
        match (left.parse(), right.parse()) {
            (Ok(ours), Err(_)) if !right.is_empty() => Ok(Self { ours, theirs: right.to_owned() }),
            (Err(_), Ok(ours)) if !left.is_empty() => Ok(Self { ours, theirs: left.to_owned() }),
            (Ok::<StatementColumn, _>(ours), Ok(same)) if ours == same => {
                Ok(Self { ours, theirs: left.to_owned() })
            }
            (Ok(_), Ok(_)) => {
                Err(BadOption(format!("{text:?} can be read in two ways: both are names of ours")))
            }
            _ => Err(BadOption(format!("{text:?} names none of {names}"))),
        }
    }
}

/// `THEIRS=charge`, `THEIRS=refund` or `THEIRS=other`: what a line of a type is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMap {
    pub theirs: String,
    /// `None` for what is neither: a fee, a payout.
    pub ours: Option<LineType>,
}

impl FromStr for TypeMap {
    type Err = BadOption;

    fn from_str(text: &str) -> Result<Self, BadOption> {
        let bad = || BadOption(format!("{text:?} is not THEIRS=charge, THEIRS=refund or THEIRS=other"));
        let (theirs, ours) = text.rsplit_once('=').ok_or_else(bad)?;
        let ours = match ours.trim() {
            "charge" => Some(LineType::Charge),
            "refund" => Some(LineType::Refund),
            "other" => None,
            _ => return Err(bad()),
        };
        Ok(Self { theirs: theirs.trim().to_owned(), ours })
    }
}

/// How a statement is to be read.
#[derive(Clone, Debug, Default)]
pub struct StatementOptions {
    pub encoding: Encoding,
    pub amounts: Amounts,
    /// The zone of times that have no offset; without it they are refused.
    pub timezone: Option<Tz>,
    pub map: Vec<StatementMap>,
    pub types: Vec<TypeMap>,
}

/// Reads a statement; `take` gets its lines, `None` for one that is neither a charge nor a refund, and
/// `progress` is told how many there were. What was detected is returned, for a person to know.
///
/// # Errors
/// Every fault of the file. What was taken before is then worth nothing.
pub fn read_statement(
    path: &Path,
    options: &StatementOptions,
    take: &mut dyn FnMut(Option<Line>),
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<String>, Faults> {
    let mut faults = FileFaults::new(path.display().to_string(), None);
    let mut notes = Vec::new();
    if let Some((mut records, _)) = open(path, options.encoding, &mut faults, &mut notes) {
        let read =
            |record: &Record<'_>, faults: &mut FileFaults| Header::read(record, options, faults, &mut notes);
        let header = header(&mut records, &mut faults, read).filter(|_| faults.count == 0);
        if let Some(header) = &header {
            let mut count = 0;
            header.names.each_record(&mut records, &mut faults, |record, faults| {
                count += 1;
                if count % TOLD_EVERY == 0 {
                    progress(count);
                }
                if let Some(line) = header.line(record, options, faults) {
                    take(line);
                }
            });
        }
    }
    ended(faults, notes)
}

/// Which cell of a record is what.
struct Header {
    names: Names,
    /// By column of ours.
    places: [Option<usize>; 5],
}

impl Header {
    fn read(
        record: &Record<'_>,
        options: &StatementOptions,
        faults: &mut FileFaults,
        notes: &mut Vec<String>,
    ) -> Self {
        let mut header = Self { names: Names::read(record), places: [None; 5] };
        for ours in StatementColumn::ALL {
            let maps: Vec<_> = options.map.iter().filter(|map| map.ours == *ours).collect();
            let theirs = maps.first().map_or(ours.as_str(), |map| map.theirs.as_str());
            let found = header.names.places(theirs);
            let needed = !maps.is_empty()
                || matches!(
                    ours,
                    StatementColumn::Charge | StatementColumn::Amount | StatementColumn::Currency
                );
            let problem = match (&found[..], &maps[..]) {
                (_, [_, second, ..]) => {
                    Some(format!("--map names {ours} twice, also as {}", Quoted(&second.theirs)))
                }
                ([_, _, ..], _) => Some("stands in the header twice".to_owned()),
                ([], _) if needed => {
                    Some(format!("the header has no such column, which is to be the {ours}"))
                }
                _ => None,
            };
            header.places[*ours as usize] = found.first().copied();
            if let Some(problem) = problem {
                let there: Vec<_> = header.names.iter().map(|name| Quoted(name).to_string()).collect();
                let hint = format!("--map {ours}=THEIRS where THEIRS is one of {}", there.join(", "));
                let at = Place { line: Some(record.line), column: Some(theirs), index: None };
                faults.add(at, None, Problem::new(problem).hint(hint));
            }
        }
        if header.places[StatementColumn::Type as usize].is_none() {
            notes.push("there is no column of types: what is below 0 is a refund".to_owned());
        }
        if header.places[StatementColumn::Time as usize].is_none() {
            notes.push("there is no column of times".to_owned());
        }
        header
    }

    /// The line of a record, as `take` of [`read_statement`] gets it; `None` where it is at fault.
    fn line(
        &self,
        record: &Record<'_>,
        options: &StatementOptions,
        faults: &mut FileFaults,
    ) -> Option<Option<Line>> {
        let mut sound = true;
        let mut refuse = |column: StatementColumn, problem: Problem| {
            sound = false;
            let cell = self.places[column as usize].unwrap_or_default();
            let place = Place { line: Some(record.line), ..self.names.place(cell) };
            faults.add(place, Some(record.cell(cell)), problem);
        };
        let cell =
            |column: StatementColumn| self.places[column as usize].map(|place| trim(record.cell(place)));
        let text = |column| cell(column).unwrap_or_default();

        let stated = text(StatementColumn::Amount);
        let (is_negative, bare) = match stated.strip_prefix(['-', '−']) {
            Some(bare) => (true, bare),
            None => (false, stated),
        };
        let line_type = match cell(StatementColumn::Type) {
            None if is_negative => Some(LineType::Refund),
            None => Some(LineType::Charge),
            Some(theirs) => match type_of(theirs, options) {
                Some(None) => return Some(None),
                known => known.flatten(),
            },
        };
        if line_type.is_none() {
            refuse(
                StatementColumn::Type,
                Problem::new("neither a charge nor a refund").hint(format!(
                    "--type-map {}=charge, =refund, or =other for what is neither",
                    text(StatementColumn::Type)
                )),
            );
        }
        let charge = text(StatementColumn::Charge);
        if charge.is_empty() {
            refuse(StatementColumn::Charge, Problem::new("required, but empty"));
        }
        let currency = text(StatementColumn::Currency).parse::<Currency>();
        if let Err(e) = &currency {
            refuse(StatementColumn::Currency, Problem::new(e.to_string()));
        }
        let amount_minor = match line_type {
            Some(LineType::Charge) if is_negative => Err(Problem::new("negative, and the line is a charge")),
            _ => amount(bare, currency.as_ref().ok().copied(), options.amounts),
        };
        let at = match cell(StatementColumn::Time) {
            None | Some("") => Ok(None),
            Some(time) => instant(time, options.timezone).map(Some),
        };
        let amount_minor = amount_minor.map_err(|problem| refuse(StatementColumn::Amount, problem));
        let at: Result<Option<Timestamp>, ()> = at.map_err(|problem| refuse(StatementColumn::Time, problem));
        if !sound {
            return None;
        }
        let (line_type, amount_minor, currency) = (line_type?, amount_minor.ok()?, currency.ok()?);
        let (charge, line, at) = (charge.to_owned(), record.line, at.ok()?);
        Some(Some(Line { line_type, charge, amount_minor, currency, line, at }))
    }
}

/// What a line of this type is about, `Some(None)` for neither: as the person says, else by a name that
/// means one thing only.
fn type_of(theirs: &str, options: &StatementOptions) -> Option<Option<LineType>> {
    if let Some(map) = options.types.iter().find(|map| map.theirs == theirs) {
        return Some(map.ours);
    }
    match theirs.to_lowercase().as_str() {
        "charge" | "payment" | "capture" => Some(Some(LineType::Charge)),
        "refund" => Some(Some(LineType::Refund)),
        _ => None,
    }
}

impl fmt::Display for StatementMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.ours, self.theirs)
    }
}
