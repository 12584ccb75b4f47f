//! Ids that a tool has changed on their way into the file. Which one it was cannot be told any
//! more, so they are refused and never repaired.

use super::faults::Problem;

/// How many significant digits a spreadsheet keeps of a number.
const SIGNIFICANT: usize = 15;

/// What programs and people write for null where they do not leave the cell empty, in lower case.
const LOOKS_NULL: [&str; 14] =
    ["null", "\\n", "none", "nan", "nil", "n/a", "na", "n.a.", "-", "--", "---", "?", "??", "(null)"];

/// What a spreadsheet writes where a formula fails, in upper case.
const SHEET_ERRORS: [&str; 10] = [
    "#N/A",
    "#REF!",
    "#NAME?",
    "#VALUE!",
    "#DIV/0!",
    "#NUM!",
    "#NULL!",
    "#SPILL!",
    "#CALC!",
    "#GETTING_DATA",
];

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// How long a date is at most that a spreadsheet writes, in bytes.
const LONGEST_DATE: usize = 11;

/// What is wrong with an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mangled {
    /// Beyond doubt.
    Certain(Problem),
    /// It may be meant: `--accept-ids` takes it.
    Likely(Problem),
}

/// Looks at an id that is not empty.
///
/// Two charges named `N/A` would be one, and the second never given back: of a charge such a name is
/// refused beyond doubt, while a user may be called None.
pub(super) fn mangled(column: &str, id: &str) -> Option<Mangled> {
    let likely = |text: &str, hint: &str| {
        Some(Mangled::Likely(
            Problem::new(text).hint(format!("{hint}, or --accept-ids if they are meant so")),
        ))
    };
    let certain = |text: &str, hint: &str| Some(Mangled::Certain(Problem::new(text).hint(hint)));
    const AS_TEXT: &str = "export the ids again, as text";
    const AS_EMPTY: &str = "export nulls as empty cells";
    if looks_null(column, id) {
        let text = "reads like null, but only an empty cell is null";
        return if column == "provider_txn_id" { certain(text, AS_EMPTY) } else { likely(text, AS_EMPTY) };
    }
    if id == "0" && matches!(column, "provider_txn_id" | "order_id") {
        return likely("a lone 0 reads like none", AS_EMPTY);
    }
    // Nearly every id begins with a letter, and none of those is a number, a sheet's error or a date, but
    // for dates that begin with a month: the quick way out.
    let begins_with_month = |id: &[u8]| {
        let is_month = |begin: &[u8; 3]| begin[2].is_ascii_lowercase() && MONTHS.contains(&begin);
        id.len() <= LONGEST_DATE && id.first_chunk().is_some_and(is_month)
    };
    if id.as_bytes()[0].is_ascii_alphabetic() && !begins_with_month(id.as_bytes()) {
        return None;
    }
    let unsigned = id.strip_prefix(['-', '+']).unwrap_or(id);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        return match id.as_bytes().first() {
            Some(b'#') if SHEET_ERRORS.iter().any(|e| id.eq_ignore_ascii_case(e)) => {
                certain("a spreadsheet's error in place of an id", AS_TEXT)
            }
            Some(b'#') if id.len() > 2 && all(id, |b| b == b'#') => {
                certain("a spreadsheet's column was too narrow for the id", AS_TEXT)
            }
            Some(b'=') if id.starts_with("=\"") => {
                certain("a spreadsheet's formula in place of an id", AS_TEXT)
            }
            Some(b'\'') => likely("an apostrophe before an id: a spreadsheet's mark for text", AS_TEXT),
            _ if is_sheet_date(column, id) => {
                likely("an id that a spreadsheet may have read as a date", AS_TEXT)
            }
            _ => None,
        };
    }
    if is_sheet_date(column, id) {
        return likely("an id that a spreadsheet may have read as a date", AS_TEXT);
    }
    match scientific(unsigned) {
        Some(true) => {
            return Some(Mangled::Certain(
                Problem::new("an id in scientific notation: its digits are lost").hint(AS_TEXT),
            ));
        }
        Some(false) => return likely("an id that reads like scientific notation", AS_TEXT),
        None => {}
    }
    if is_rounded(unsigned) {
        return likely(
            "15 significant digits followed by zeros: a spreadsheet rounds long numbers to this",
            AS_TEXT,
        );
    }
    match unsigned.split_once('.') {
        Some((whole, zeros)) if all(whole, |b| b.is_ascii_digit()) && all(zeros, |b| b == b'0') => {
            likely("an id with decimals: a tool has read the column as numbers", AS_TEXT)
        }
        _ => None,
    }
}

/// `unknown` is what a site may give as the user or show of a row whose order is gone.
fn looks_null(column: &str, id: &str) -> bool {
    // Nearly every id is longer, or begins with another character.
    let may_be = |first: u8| matches!(first, b'n' | b'N' | b'u' | b'U' | b'\\' | b'-' | b'?' | b'(');
    id.len() <= 8
        && id.bytes().next().is_some_and(may_be)
        && (LOOKS_NULL.iter().any(|null| id.eq_ignore_ascii_case(null))
            || (matches!(column, "provider_txn_id" | "order_id")
                && ["unknown", "unknown?"].iter().any(|null| id.eq_ignore_ascii_case(null))))
}

/// Whether a text is `Mar-01`, `1-Mar`, `01-Mar-24`, `2026-03-01`, `2026/3/1` or `3/1/2026`: what a
/// spreadsheet makes of `3-1`. A show may well be named by its day.
fn is_sheet_date(column: &str, id: &str) -> bool {
    let is_month = |part: &str| MONTHS.iter().any(|month| part.as_bytes() == *month);
    let is_number = |part: &str| part.len() <= 4 && all(part, |b| b.is_ascii_digit());
    if id.len() > LONGEST_DATE {
        return false;
    }
    match id.split('-').collect::<Vec<_>>()[..] {
        [a, b] => (is_month(a) && is_number(b)) || (is_number(a) && is_month(b)),
        [day, month, year] if is_month(month) => is_number(day) && is_number(year),
        _ => column != "show_id" && is_numeric_date(id),
    }
}

fn is_numeric_date(id: &str) -> bool {
    let parts = |by: char| id.split(by).map(|part| all(part, |b| b.is_ascii_digit()).then_some(part));
    let by = if id.contains('/') { '/' } else { '-' };
    let Some(parts) = parts(by).collect::<Option<Vec<_>>>() else { return false };
    let at_most =
        |part: &str, most: u32| part.len() <= 2 && part.parse().is_ok_and(|n| (1..=most).contains(&n));
    let is_year = |part: &str| part.len() == 4 && (part.starts_with("19") || part.starts_with("20"));
    match parts[..] {
        [year, month, day] if is_year(year) => at_most(month, 12) && at_most(day, 31),
        [a, b, year] if is_year(year) => {
            at_most(a, 31) && at_most(b, 31) && (at_most(a, 12) || at_most(b, 12))
        }
        _ => false,
    }
}

/// Whether a text is a number in scientific notation: beyond doubt (`2.02E+14`, `1E+15`), or so short
/// that it may as well be hexadecimal or a code of somebody's own (`1E15`).
fn scientific(unsigned: &str) -> Option<bool> {
    let (mantissa, exponent) = unsigned.split_once(['e', 'E'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.len() > 3 || !all(digits, |b| b.is_ascii_digit()) {
        return None;
    }
    match mantissa.split_once(['.', ',']) {
        Some((whole, fraction)) => {
            let numeric = all(whole, |b| b.is_ascii_digit()) && fraction.bytes().all(|b| b.is_ascii_digit());
            numeric.then_some(true)
        }
        None if !all(mantissa, |b| b.is_ascii_digit()) => None,
        None if exponent.starts_with('+') => Some(true),
        None => (mantissa.len() == 1).then_some(false),
    }
}

/// Whether a text is a number of more than 15 digits, of which those after the 15th are all zero.
/// A leading zero shows that no spreadsheet took it for a number.
fn is_rounded(unsigned: &str) -> bool {
    unsigned.len() > SIGNIFICANT
        && !unsigned.starts_with('0')
        && unsigned.bytes().all(|b| b.is_ascii_digit())
        && unsigned.bytes().skip(SIGNIFICANT).all(|b| b == b'0')
}

fn all(text: &str, is: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scientific_notation_is_beyond_doubt_where_it_has_a_fraction_or_a_plus() {
        for id in
            ["2.02611E+14", "2,02611E+14", "1E+15", "1e+21", "2.02611E14", "1.5e-7", "-1.2E+3", "2.E+14"]
        {
            assert!(matches!(mangled("user_id", id), Some(Mangled::Certain(_))), "{id}");
        }
    }

    #[test]
    fn what_a_spreadsheet_leaves_of_a_lost_id_is_beyond_doubt() {
        for id in
            ["#N/A", "#n/a", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!", "#####", "=\"001\""]
        {
            assert!(matches!(mangled("user_id", id), Some(Mangled::Certain(_))), "{id}");
        }
    }

    #[test]
    fn no_charge_is_named_by_what_stands_for_nothing() {
        for id in ["n/a", "NA", "None", "NULL", "nil", "NaN", "-", "--", "?", "unknown", "Unknown?", "\\N"] {
            assert!(matches!(mangled("provider_txn_id", id), Some(Mangled::Certain(_))), "{id}");
            assert!(matches!(mangled("order_id", id), Some(Mangled::Likely(_))), "{id}");
        }
        assert_eq!(mangled("user_id", "unknown"), None);
        for column in ["provider_txn_id", "order_id"] {
            assert!(matches!(mangled(column, "0"), Some(Mangled::Likely(_))), "{column}");
        }
        assert_eq!(mangled("user_id", "0"), None);
    }

    #[test]
    fn what_may_be_meant_can_be_accepted() {
        for id in [
            "1E15",
            "1e-9",
            "2026111120140000",
            "202611112014123000",
            "1001.0",
            "NULL",
            "\\N",
            "NaN",
            "na",
            "-",
            "'000123",
            "Mar-01",
            "01-Mar",
            "1-Mar-24",
            "Mar-2024",
            "2026-11-11",
            "2026/11/11",
            "11/11/2026",
            "31/12/2026",
            "3/1/2026",
        ] {
            assert!(matches!(mangled("user_id", id), Some(Mangled::Likely(_))), "{id}");
        }
    }

    #[test]
    fn a_show_may_be_named_by_its_day() {
        assert_eq!(mangled("show_id", "2026-11-11"), None);
    }

    #[test]
    fn ids_of_all_kinds_pass() {
        for id in [
            "O-1",
            "202611112014123",
            "2026111120141230001",
            "0001234567890123000",
            "123456789012345",
            "4e12345678901234",
            "12345e67",
            "12E-5A",
            "2024-11-31-1",
            "2024-13-01",
            "1024-11-11",
            "32/11/2026",
            "1.2.3",
            "E+14",
            "9f3e1b2c-1e10-4c1d-9e55-3d3f6a7b8c9d",
            "null-7",
            "MAR-01",
            "Mar-A1",
            "Mar-00001",
            "-7",
            "#1",
            "+",
            "7",
            "７７",
        ] {
            assert_eq!(mangled("user_id", id), None, "{id}");
        }
    }
}
