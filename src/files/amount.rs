//! Amounts as people and programs write them, into minor units without rounding
//! (contract, section 1).

use super::faults::Problem;
use super::options::Amounts;
use crate::core::money::Currency;

const TOO_LARGE: &str = "too large: an amount is at most 9223372036854775807 minor units";

/// A whole number of at least `least`.
pub(super) fn count(text: &str, least: i64) -> Result<i64, Problem> {
    if let Some(problem) = negative(text) {
        return Err(problem);
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Problem::new("not a whole number"));
    }
    let count =
        text.parse().map_err(|_| Problem::new("too large: a number is at most 9223372036854775807"))?;
    if count < least { Err(Problem::new(format!("must be at least {least}"))) } else { Ok(count) }
}

/// An amount in the minor unit of its currency. Major units without a currency are nothing: the row
/// is refused for its currency.
pub(super) fn amount(text: &str, currency: Option<Currency>, amounts: Amounts) -> Result<i64, Problem> {
    if let Some(problem) = negative(text) {
        return Err(problem);
    }
    match (amounts, currency) {
        (Amounts::Minor, _) => minor(text),
        (_, None) => Ok(0),
        (Amounts::Decimal, Some(currency)) => major(text, currency, '.', &[',']),
        (Amounts::DecimalComma, Some(currency)) => {
            major(text, currency, ',', &['.', ' ', '\u{a0}', '\u{202f}', '\u{2009}', '\'', '’'])
        }
    }
}

fn negative(text: &str) -> Option<Problem> {
    let rest = text.strip_prefix(['-', '−'])?;
    rest.starts_with(|c: char| c.is_ascii_digit()).then(|| Problem::new("negative"))
}

fn minor(text: &str) -> Result<i64, Problem> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map_err(|_| Problem::new(TOO_LARGE));
    }
    let marked = text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || c.is_whitespace() || matches!(c, '.' | ',' | '\'' | '’'));
    Err(if marked {
        Problem::new("a decimal or thousands mark in an amount of minor units").hint(
            "if the amounts are in major units: --amounts decimal (1,012.50) or --amounts decimal-comma (1.012,50)",
        )
    } else {
        Problem::new("not a whole number of minor units")
    })
}

/// Major units, exactly: groups of three digits behind one kind of thousands mark, and no more
/// decimals than the currency has, unless they are zeros.
fn major(text: &str, currency: Currency, point: char, marks: &[char]) -> Result<i64, Problem> {
    let unreadable = || {
        Problem::new(format!("not an amount with a decimal {}", if point == '.' { "point" } else { "comma" }))
            .hint(
                "--amounts says how amounts are written: minor, decimal (1,012.50), decimal-comma (1.012,50)",
            )
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = match text.split_once(point) {
        Some((whole, fraction)) if digits(fraction) => (whole, fraction),
        Some(_) => return Err(unreadable()),
        None => (text, ""),
    };
    let mark = whole.chars().find(|c| marks.contains(c));
    let mut groups: Vec<&str> = match mark {
        Some(mark) => whole.split(mark).collect(),
        None => vec![whole],
    };
    if !groups.iter().all(|group| digits(group)) {
        return Err(unreadable());
    }
    if mark.is_some() && (groups[0].len() > 3 || groups[1..].iter().any(|group| group.len() != 3)) {
        return Err(Problem::new("thousands marks that do not stand before groups of three digits"));
    }
    let decimals = currency.decimals() as usize;
    let (kept, beyond) = fraction.split_at(fraction.len().min(decimals));
    if beyond.bytes().any(|b| b != b'0') {
        return Err(Problem::new(format!(
            "{} decimal{}, but {currency} has {}",
            fraction.len(),
            if fraction.len() == 1 { "" } else { "s" },
            if decimals == 0 { "none".to_owned() } else { decimals.to_string() }
        )));
    }
    let padding = "0".repeat(decimals - kept.len());
    groups.extend([kept, &padding]);
    groups.concat().parse().map_err(|_| Problem::new(TOO_LARGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, code: &str, amounts: Amounts) -> Result<i64, String> {
        amount(text, code.parse().ok(), amounts).map_err(|p| p.text)
    }

    #[test]
    fn major_units_are_exact_in_every_currency() {
        for (text, code, minor) in [
            ("12.5", "EUR", 1250),
            ("1,012.50", "EUR", 101_250),
            ("1234567", "EUR", 123_456_700),
            ("0.29", "EUR", 29),
            ("9899", "JPY", 9899),
            ("9,899.00", "JPY", 9899),
            ("1.234", "KWD", 1234),
            ("1.5000", "KWD", 1500),
            ("92233720368547758.07", "EUR", i64::MAX),
        ] {
            assert_eq!(read(text, code, Amounts::Decimal), Ok(minor), "{text} {code}");
        }
        for text in ["1.012,50", "1 012,50", "1\u{a0}012,50", "1\u{202f}012,50", "1'012,5", "1012,500"] {
            assert_eq!(read(text, "EUR", Amounts::DecimalComma), Ok(101_250), "{text}");
        }
    }

    #[test]
    fn whatever_could_be_misread_is_refused() {
        for (text, code) in [
            ("1.234", "EUR"),
            ("98.99", "JPY"),
            ("1,2,3", "EUR"),
            ("1,23", "EUR"),
            ("1234,567", "EUR"),
            (",123", "EUR"),
            ("1.012,50", "EUR"),
            (".5", "EUR"),
            ("5.", "EUR"),
            ("", "EUR"),
            ("€5", "EUR"),
            ("1.2E+05", "EUR"),
            ("92233720368547758.08", "EUR"),
            ("-1", "EUR"),
        ] {
            assert!(read(text, code, Amounts::Decimal).is_err(), "{text} {code}");
        }
        for text in ["1,012.50", "1.012 345,00", "1.01,5"] {
            assert!(read(text, "EUR", Amounts::DecimalComma).is_err(), "{text}");
        }
        for text in ["12.00", "1,200", "1 200", "12O0", "9223372036854775808", "-5"] {
            assert!(read(text, "EUR", Amounts::Minor).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_have_a_least_value() {
        assert_eq!(count("0", 0), Ok(0));
        for (text, problem) in [
            ("0", "must be at least 1"),
            ("-2", "negative"),
            ("2.0", "not a whole number"),
            ("", "not a whole number"),
        ] {
            assert_eq!(count(text, 1).unwrap_err().text, problem, "{text}");
        }
    }
}
