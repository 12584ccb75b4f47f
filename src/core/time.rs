//! Instants and spans, in whole microseconds (contract, section 1: digits beyond are cut).

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// An instant: microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339 with an offset. `None` when the text is anything else, or outside the years 0 to 9999.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        DateTime::parse_from_rfc3339(text).ok().map(|t| Self::from_datetime(&t))
    }

    /// The instant, with digits beyond microseconds cut towards the past.
    pub fn from_datetime<Tz: chrono::TimeZone>(t: &DateTime<Tz>) -> Self {
        Self(t.timestamp_micros())
    }

    pub fn datetime(self) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(self.0).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }

    /// This instant moved by a span; stops at the ends of what can be held.
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    pub const fn minus(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// How long after `earlier` this is; negative when it is before.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with as many decimals as needed: none, three or six.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.datetime().to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_rfc3339(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("not an RFC 3339 time: {text}")))
    }
}

/// A length of time in microseconds; may be negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(i64);

impl Span {
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    pub const fn from_mins(minutes: i64) -> Self {
        Self::from_secs(minutes.saturating_mul(60))
    }

    pub const fn micros(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Span {
    /// Hours, minutes and seconds, as the command line reads them: `1h30m`, `2m`, `0.43s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let micros = self.0.unsigned_abs();
        let (hours, minutes) = (micros / 3_600_000_000, micros / 60_000_000 % 60);
        let rest = micros % 60_000_000;
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        let (seconds, fraction) = (rest / 1_000_000, rest % 1_000_000);
        if fraction > 0 {
            write!(f, "{seconds}.{}s", format!("{fraction:06}").trim_end_matches('0'))
        } else if seconds > 0 || micros == 0 {
            write!(f, "{seconds}s")
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_the_same_in_every_offset_and_cut_to_microseconds() {
        let parse = |t| Timestamp::parse_rfc3339(t).unwrap();
        assert_eq!(parse("2026-11-11T20:14:00.1234569+08:00"), parse("2026-11-11T12:14:00.123456Z"));
        assert_eq!(parse("2026-11-11T20:14:00+08:00").to_string(), "2026-11-11T12:14:00Z");
        assert_eq!(Timestamp::parse_rfc3339("2026-11-11 20:14"), None);
    }

    #[test]
    fn spans_read_as_they_are_typed() {
        assert_eq!(Span::from_mins(90).to_string(), "1h30m");
        assert_eq!(Span::from_micros(430_000).to_string(), "0.43s");
        assert_eq!(Span::from_secs(0).to_string(), "0s");
        assert_eq!(Span::from_secs(-61).to_string(), "-1m1s");
    }
}
