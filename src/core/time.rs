//! Instants and spans, in whole microseconds (contract, section 1: digits beyond are cut).

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, LocalResult, NaiveDate, SecondsFormat, TimeZone, Utc};
use chrono_tz::Tz;
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
    pub fn from_datetime<Z: TimeZone>(t: &DateTime<Z>) -> Self {
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

/// Why a text is no instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeError {
    /// It is not written as `YYYY-MM-DD HH:MM`, with what may follow.
    Unreadable,
    /// It is written so, but there is no such day, hour, minute, second or offset.
    NoSuchTime,
    /// It has no offset, and no zone is given.
    NoOffset,
    /// Clocks of the zone were set forward over it.
    Skipped { zone: Tz },
    /// Clocks of the zone were set back over it: it came twice.
    Ambiguous { zone: Tz, earlier: Timestamp, later: Timestamp },
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => f.write_str("not a time such as 2026-11-11T20:14:00+08:00"),
            Self::NoSuchTime => f.write_str("there is no such day or time of day"),
            Self::NoOffset => f.write_str("a time without an offset from UTC"),
            Self::Skipped { zone } => {
                write!(f, "there was no such time in {zone}: the clocks were set forward over it")
            }
            Self::Ambiguous { zone, earlier, later } => write!(
                f,
                "this time came twice in {zone}, when the clocks were set back: it is {earlier} or {later}"
            ),
        }
    }
}

impl std::error::Error for TimeError {}

/// Reads an instant: `YYYY-MM-DD`, `T` or a blank, `HH:MM`, perhaps seconds and their fraction, then
/// an offset: `Z`, `UTC`, `+08:00`, `+0800` or `+08`, perhaps after a blank. Without one it is a local
/// time of `zone`. Digits beyond microseconds are cut.
///
/// # Errors
/// The text is something else, or stands for no instant or for two.
pub fn parse_instant(text: &str, zone: Option<Tz>) -> Result<Timestamp, TimeError> {
    let (date, time, rest) = split_instant(text.as_bytes()).ok_or(TimeError::Unreadable)?;
    let (rest, fraction) = split_fraction(rest).ok_or(TimeError::Unreadable)?;
    let [year, month, day] = date;
    let [hour, minute, second] = time;
    let day = NaiveDate::from_ymd_opt(year as i32, month, day).ok_or(TimeError::NoSuchTime)?;
    // The 60th second is a leap second, and counts as the first of the next minute.
    if hour > 23 || minute > 59 || second > 60 {
        return Err(TimeError::NoSuchTime);
    }
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    let midnight = day.and_time(chrono::NaiveTime::MIN);
    let local = midnight.and_utc().timestamp() + seconds;
    let at = |utc_seconds: i64| Timestamp(utc_seconds * 1_000_000 + fraction);
    if !rest.is_empty() {
        return offset_seconds(rest).map(|offset| at(local - offset));
    }
    let zone = zone.ok_or(TimeError::NoOffset)?;
    match zone.from_local_datetime(&(midnight + chrono::Duration::seconds(seconds))) {
        LocalResult::Single(t) => Ok(at(t.timestamp())),
        LocalResult::None => Err(TimeError::Skipped { zone }),
        LocalResult::Ambiguous(a, b) => {
            let (a, b) = (at(a.timestamp()), at(b.timestamp()));
            Err(TimeError::Ambiguous { zone, earlier: a.min(b), later: a.max(b) })
        }
    }
}

/// Year, month and day; hour, minute and second (0 where it is not written); what follows.
fn split_instant(text: &[u8]) -> Option<([u32; 3], [u32; 3], &[u8])> {
    let (date, rest) = text.split_at_checked(10)?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *date else { return None };
    let [b'T' | b't' | b' ', h1, h2, b':', n1, n2, rest @ ..] = rest else { return None };
    let (s1, s2, rest) = match rest {
        [b':', s1, s2, rest @ ..] => (*s1, *s2, rest),
        _ => (b'0', b'0', rest),
    };
    let year = two_digits(y1, y2)? * 100 + two_digits(y3, y4)?;
    Some((
        [year, two_digits(m1, m2)?, two_digits(d1, d2)?],
        [two_digits(*h1, *h2)?, two_digits(*n1, *n2)?, two_digits(s1, s2)?],
        rest,
    ))
}

/// The microseconds of a fraction at the start of the text, and what follows it.
fn split_fraction(text: &[u8]) -> Option<(&[u8], i64)> {
    let [b'.' | b',', digits @ ..] = text else { return Some((text, 0)) };
    let length = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    let micros = (0..6).fold(0, |sum, i| {
        let digit = if i < length { digits[i] - b'0' } else { 0 };
        sum * 10 + i64::from(digit)
    });
    (length > 0).then(|| (&digits[length..], micros))
}

/// How far a zone written as an offset is ahead of UTC.
fn offset_seconds(text: &[u8]) -> Result<i64, TimeError> {
    let (sign, digits) = match text.strip_prefix(b" ").unwrap_or(text) {
        b"Z" | b"z" | b"UTC" => return Ok(0),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return Err(TimeError::Unreadable),
    };
    let (hours, minutes) = match *digits {
        [h1, h2] => (two_digits(h1, h2), Some(0)),
        [h1, h2, m1, m2] | [h1, h2, b':', m1, m2] => (two_digits(h1, h2), two_digits(m1, m2)),
        _ => (None, None),
    };
    match hours.zip(minutes).ok_or(TimeError::Unreadable)? {
        (hours @ 0..=23, minutes @ 0..=59) => Ok(sign * i64::from(hours * 3600 + minutes * 60)),
        _ => Err(TimeError::NoSuchTime),
    }
}

fn two_digits(tens: u8, ones: u8) -> Option<u32> {
    let both = tens.is_ascii_digit() && ones.is_ascii_digit();
    both.then(|| u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
}

/// A length of time in microseconds; may be negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(i64);

impl Span {
    /// The same for what waits; nothing where it is negative.
    pub fn duration(self) -> std::time::Duration {
        std::time::Duration::from_micros(u64::try_from(self.0).unwrap_or(0))
    }

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    pub const fn from_mins(minutes: i64) -> Self {
        Self::from_secs(minutes.saturating_mul(60))
    }

    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
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

/// The text is no span, or one that makes no sense as a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanError(String);

impl fmt::Display for SpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpanError {}

impl FromStr for Span {
    type Err = SpanError;

    /// Reads a positive span as it is typed: `90s`, `2m`, `1h30m`.
    fn from_str(text: &str) -> Result<Self, SpanError> {
        match Self::or_nothing(text)? {
            Self(0) => Err(SpanError(format!("{text:?} is nothing, but a span is longer than that"))),
            span => Ok(span),
        }
    }
}

impl Span {
    /// Reads a span as it is typed, which may be nothing: `0s`.
    ///
    /// # Errors
    /// It is negative, too long, finer than a microsecond or no span.
    pub fn or_nothing(text: &str) -> Result<Self, SpanError> {
        if text.trim_start().starts_with('-') {
            return Err(SpanError(format!("{text:?} is negative, which no span is")));
        }
        let span = humantime::parse_duration(text)
            .map_err(|e| SpanError(format!("{text:?} is no span such as 90s, 2m or 1h30m: {e}")))?;
        match i64::try_from(span.as_micros()) {
            Err(_) => Err(SpanError(format!("{text:?} is too long"))),
            Ok(_) if span.subsec_nanos() % 1000 > 0 => {
                Err(SpanError(format!("{text:?} is finer than a microsecond")))
            }
            Ok(micros) => Ok(Self(micros)),
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

    #[test]
    fn offsets_are_read_as_databases_and_languages_write_them() {
        let expected = Timestamp::parse_rfc3339("2026-11-11T12:14:05.5Z").unwrap();
        for text in [
            "2026-11-11T20:14:05.5+08:00",
            "2026-11-11 20:14:05.5+08",
            "2026-11-11 20:14:05.500 +0800",
            "2026-11-11 12:14:05,5 UTC",
            "2026-11-11t12:14:05.5000009z",
            "2026-11-11T08:44:05.5-03:30",
        ] {
            assert_eq!(parse_instant(text, None), Ok(expected), "{text}");
        }
        let minutes = parse_instant("2026-11-11T20:14+08:00", None);
        assert_eq!(minutes, Ok(Timestamp::parse_rfc3339("2026-11-11T12:14:00Z").unwrap()));
        let leap = parse_instant("2016-12-31T23:59:60.25Z", None);
        assert_eq!(leap, Ok(Timestamp::parse_rfc3339("2016-12-31T23:59:60.25Z").unwrap()));
        let before_1970 = parse_instant("1969-12-31T23:59:59.9999999Z", None);
        assert_eq!(before_1970, Ok(Timestamp::from_micros(-1)));
    }

    #[test]
    fn a_time_without_an_offset_needs_a_zone_and_names_one_instant_in_it() {
        use chrono_tz::{Asia::Shanghai, Europe::Berlin};
        assert_eq!(parse_instant("2026-11-11 20:14", None), Err(TimeError::NoOffset));
        let local = parse_instant("2026-11-11 20:14", Some(Shanghai)).unwrap();
        assert_eq!(local.to_string(), "2026-11-11T12:14:00Z");
        assert_eq!(
            parse_instant("2026-11-11 20:14Z", Some(Shanghai)).unwrap().to_string(),
            "2026-11-11T20:14:00Z"
        );
        let skipped = parse_instant("2026-03-29 02:30:00", Some(Berlin)).unwrap_err();
        assert_eq!(skipped, TimeError::Skipped { zone: Berlin });
        let twice = parse_instant("2026-10-25 02:30:00.25", Some(Berlin)).unwrap_err();
        assert!(
            twice.to_string().ends_with("2026-10-25T00:30:00.250Z or 2026-10-25T01:30:00.250Z"),
            "{twice}"
        );
    }

    #[test]
    fn what_is_no_time_is_told_from_what_never_was_one() {
        for text in [
            "",
            "2026-11-11",
            "11/11/2026 20:14",
            "2026-11-11T20:14:",
            "2026-11-11T20:14:00.Z",
            "now",
            "1762863240",
            "2026-11-11T20:14:00+8",
            "2026-11-11T20:14:00 PST",
            "2026-11-11T20:14:00  Z",
            "２０２６-11-11T20:14Z",
        ] {
            assert_eq!(parse_instant(text, Some(Tz::UTC)), Err(TimeError::Unreadable), "{text}");
        }
        for text in
            ["2026-02-30T00:00Z", "2026-11-11T24:00Z", "2026-11-11T20:14:61Z", "2026-11-11T20:14+24:00"]
        {
            assert_eq!(parse_instant(text, None), Err(TimeError::NoSuchTime), "{text}");
        }
    }

    #[test]
    fn a_typed_span_is_positive_and_whole_microseconds() {
        for (text, seconds) in [("90s", 90), ("2m", 120), ("1h30m", 5400), ("10s", 10), ("1h 1s", 3601)] {
            assert_eq!(text.parse(), Ok(Span::from_secs(seconds)), "{text}");
            assert_eq!(Span::from_secs(seconds).to_string().parse(), Ok(Span::from_secs(seconds)));
        }
        assert_eq!("0.43s".parse(), Ok(Span::from_micros(430_000)));
        for (text, why) in [
            ("-5s", "negative"),
            ("0s", "nothing"),
            ("1ns", "finer"),
            ("500000years", "too long"),
            ("90", "90sec"),
            ("soon", "no span"),
            ("", "empty"),
        ] {
            let error = text.parse::<Span>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
