//! The first line of a file: what separates its cells, and which of them are whose.

use super::cells::trim;
use super::faults::{FileFaults, Place, Problem, Quoted};
use super::lines::name_notes;
use super::options::{ColumnMap, ReadOptions};
use super::records::Record;
use super::table::{Column, Kind, Need};
use crate::core::status::Ledger;

/// Which cell of a record belongs to which column of the ledger.
pub(super) struct Header {
    /// The names in the file, blanks dropped.
    names: Vec<String>,
    /// By column of the ledger: its place in the file; `None` where the file has no such column.
    pub places: Vec<Option<usize>>,
    /// The place of the currency of a row's amounts.
    pub currency: Option<usize>,
    /// The maps that were used, as places in the options.
    pub maps_used: Vec<usize>,
    pub notes: Vec<String>,
}

impl Header {
    /// Finds the ledger's columns in the first record. Missing, repeated and doubly named columns
    /// are faults; those that the ledger does not have are told and ignored.
    pub fn read(
        record: &Record<'_>,
        ledger: Ledger,
        columns: &[Column],
        options: &ReadOptions,
        faults: &mut FileFaults,
    ) -> Self {
        let names: Vec<String> = record.iter().map(|name| trim(name).to_owned()).collect();
        let mut header = Self {
            names,
            places: vec![None; columns.len()],
            currency: None,
            maps_used: Vec::new(),
            notes: Vec::new(),
        };
        let mut unknown = Vec::new();
        for (place, name) in header.names.iter().enumerate() {
            let meant = |map: &ColumnMap| map.theirs == *name && applies(map, ledger, columns);
            let maps = options.map.iter().enumerate().filter(|(_, map)| meant(map));
            // Of two maps the one that names the ledger.
            let map = maps.min_by_key(|(_, map)| map.ledger.is_none()).map(|(map, _)| map);
            header.maps_used.extend(map);
            let ours = map.map_or(name.as_str(), |map| options.map[map].ours);
            match columns.iter().position(|column| column.name == ours) {
                None => unknown.push(name.as_str()),
                Some(index) => match header.places[index].replace(place) {
                    None => {}
                    Some(first) => {
                        let at = Place { line: Some(record.line), ..header.place(place) };
                        let problem =
                            format!("{ours} stands in the header twice, also as column {}", first + 1);
                        faults.add(at, None, Problem::new(problem));
                    }
                },
            }
        }
        header.currency =
            columns.iter().position(|c| c.kind == Kind::Currency).and_then(|i| header.places[i]);
        let mut assumed = Vec::new();
        for (column, _) in columns.iter().zip(&header.places).filter(|(_, place)| place.is_none()) {
            match column.need {
                Need::Required => {
                    let problem = Problem::new("the header has no such column, and it is required");
                    let problem = if unknown.is_empty() {
                        problem.hint("the first line of each file names its columns")
                    } else {
                        let of: Vec<_> = unknown.iter().map(|name| Quoted(name).to_string()).collect();
                        let of = of.join(", ");
                        problem.hint(format!("--map THEIRS={} where THEIRS is one of {of}", column.name))
                    };
                    let at = Place { line: Some(record.line), column: Some(column.name), index: None };
                    faults.add(at, None, problem);
                }
                Need::Nullable => assumed.push(format!("{} is null", column.name)),
                Need::Default(value) => assumed.push(format!("{} is {value}", column.name)),
            }
        }
        header.notes = name_notes("columns", unknown, &assumed);
        header
    }

    /// What stands in the files of a database, which have no header.
    pub fn of_database(columns: &[Column]) -> Self {
        Self {
            names: columns.iter().map(|column| column.name).chain(["shard"]).map(str::to_owned).collect(),
            places: (0..columns.len()).map(Some).collect(),
            currency: columns.iter().position(|column| column.kind == Kind::Currency),
            maps_used: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// How many cells a record has.
    pub fn width(&self) -> usize {
        self.names.len()
    }

    /// Where the cells of a column of the ledger stand, counted from 0 in the contract's order.
    pub fn column(&self, index: usize) -> Place<'_> {
        self.places[index].map_or(Place::default(), |place| self.place(place))
    }

    /// The place of a cell of the file, counted from 0.
    pub fn place(&self, place: usize) -> Place<'_> {
        Place { line: None, column: self.names.get(place).map(String::as_str), index: Some(place) }
    }
}

/// Whether a map can be meant for a ledger.
fn applies(map: &ColumnMap, ledger: Ledger, columns: &[Column]) -> bool {
    match map.ledger {
        Some(only) => only == ledger,
        None => columns.iter().any(|column| column.name == map.ours),
    }
}

/// The delimiter that a first line `sep=;` declares, as some exports do for spreadsheets.
pub(super) fn declared_delimiter(line: &[u8]) -> Option<u8> {
    match line {
        [b's', b'e', b'p', b'=', delimiter @ (b',' | b';' | b'\t')] => Some(*delimiter),
        _ => None,
    }
}

/// Of comma, semicolon and tab the one that the line has most of outside quotation marks.
pub(super) fn delimiter(line: &[u8]) -> u8 {
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0)];
    let mut quoted = false;
    for byte in line {
        quoted ^= *byte == b'"';
        if let Some((_, count)) = counts.iter_mut().find(|(d, _)| d == byte && !quoted) {
            *count += 1;
        }
    }
    let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
    most.map_or(b',', |(delimiter, _)| delimiter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_the_most_frequent_one_outside_quotation_marks() {
        for (line, expected) in [
            ("a,b,c", b','),
            ("a;b;\"c,d,e,f\"", b';'),
            ("a\tb", b'\t'),
            ("a", b','),
            ("", b','),
            ("a,b;c", b','),
        ] {
            assert_eq!(delimiter(line.as_bytes()), expected, "{line}");
        }
    }
}
