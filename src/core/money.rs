//! Money: integers in the currency's minor unit, never a float (contract, section 1).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An ISO 4217 currency that has a minor unit or is counted in whole units.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency(iso_currency::Currency);

impl Currency {
    /// The three-letter code, such as `CNY`.
    pub fn code(self) -> &'static str {
        self.0.code()
    }

    /// How many decimals the currency has: JPY 0, CNY 2, KWD 3.
    /// Units that ISO 4217 gives no decimals at all (gold) count whole.
    pub fn decimals(self) -> u32 {
        self.0.exponent().map_or(0, u32::from)
    }

    /// An amount of minor units, written in major units with the currency's decimals and its code:
    /// `1234` of CNY is `12.34 CNY`.
    pub fn show(self, amount_minor: i128) -> String {
        format!("{} {}", self.show_bare(amount_minor), self.code())
    }

    /// Minor units of a plain decimal text in major units: `12.34` of CNY is 1234. `None` where the
    /// text is no decimal, has digits other than zeros beyond the currency's decimals, or does not fit.
    pub fn minor_of_decimal(self, text: &str) -> Option<i64> {
        let decimals = self.decimals() as usize;
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let (kept, beyond) = fraction.split_at(fraction.len().min(decimals));
        if beyond.bytes().any(|b| b != b'0') {
            return None;
        }
        format!("{sign}{whole}{kept:0<decimals$}").parse().ok()
    }

    /// As [`Currency::show`], without the code.
    pub fn show_bare(self, amount_minor: i128) -> String {
        let decimals = self.decimals() as usize;
        let sign = if amount_minor < 0 { "-" } else { "" };
        let digits = format!("{:0>width$}", amount_minor.unsigned_abs(), width = decimals + 1);
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        if decimals == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
    }
}

/// The text is no ISO 4217 code (three capital letters).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownCurrency;

impl fmt::Display for UnknownCurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an ISO 4217 currency code")
    }
}

impl std::error::Error for UnknownCurrency {}

impl FromStr for Currency {
    type Err = UnknownCurrency;

    fn from_str(text: &str) -> Result<Self, UnknownCurrency> {
        // No currency, and the code for tests: nobody is paid in either.
        let known = iso_currency::Currency::from_code(text).filter(|_| !matches!(text, "XXX" | "XTS"));
        known.map(Self).ok_or(UnknownCurrency)
    }
}

impl TryFrom<String> for Currency {
    type Error = UnknownCurrency;

    fn try_from(text: String) -> Result<Self, UnknownCurrency> {
        text.parse()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl PartialOrd for Currency {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Currency {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.code().cmp(other.code())
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        code.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_with_the_decimals_of_their_currency() {
        let show = |code: &str, amount| code.parse::<Currency>().unwrap().show(amount);
        assert_eq!(show("CNY", 1234), "12.34 CNY");
        assert_eq!(show("CNY", 5), "0.05 CNY");
        assert_eq!(show("JPY", 9899), "9899 JPY");
        assert_eq!(show("KWD", -1), "-0.001 KWD");
        assert_eq!(show("EUR", i128::from(i64::MIN)), "-92233720368547758.08 EUR");
    }

    #[test]
    fn a_decimal_is_read_exactly_or_not_at_all() {
        let minor = |code: &str, text| code.parse::<Currency>().unwrap().minor_of_decimal(text);
        assert_eq!(minor("CNY", "12.34"), Some(1234));
        assert_eq!(minor("CNY", "12"), Some(1200));
        assert_eq!(minor("CNY", "-0.5000"), Some(-50));
        assert_eq!(minor("JPY", "9899.00"), Some(9899));
        assert_eq!(minor("KWD", "1.2"), Some(1200));
        for bad in ["12.345", "", ".5", "1,000", "1e3", "x", "92233720368547758.08"] {
            assert_eq!(minor("CNY", bad), None, "{bad}");
        }
    }

    #[test]
    fn only_capital_iso_codes_are_currencies() {
        assert!("EUR".parse::<Currency>().is_ok());
        for bad in ["eur", "EURO", "", "RMB", "XXX", "XTS"] {
            assert_eq!(bad.parse::<Currency>(), Err(UnknownCurrency), "{bad}");
        }
    }
}
