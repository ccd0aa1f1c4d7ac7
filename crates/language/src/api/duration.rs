//! Durations as Katalogs write them.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::later::FORMAT;

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing was written.
    #[error("the duration is empty; write one such as `30s`")]
    Empty,
    /// A number without a unit, such as `30`.
    #[error("`{0}` has no unit; write `{0}s` for seconds")]
    NoUnit(String),
    /// Anything else that is not a number followed by a unit.
    #[error(
        "`{0}` is not a valid duration; write numbers with the units ns, us, ms, s, m, h, d, w, mo or y, such as `1h30m`"
    )]
    Syntax(String),
    /// More than the type can hold.
    #[error("`{0}` is too long")]
    TooLong(String),
}

/// Nanoseconds in each unit. A month is 30 days and a year 365, as for certificates.
const UNITS: [(&str, u128); 11] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
    ("mo", 2_592_000_000_000_000),
];
const YEAR: (&str, u128) = ("y", 31_536_000_000_000_000);
/// Longest duration accepted: 1000 years, so that arithmetic on time never overflows.
const LONGEST_NANOS: u128 = YEAR.1 * 1000;

/// Parses a duration such as `500ms`, `1h30m`, `1.5h` or `30d`.
///
/// Go's form with the further units `d` (24 hours), `w` (7 days), `mo` (30 days) and `y` (365 days).
/// `0` and `0s` are zero. Negative durations are refused.
///
/// # Errors
/// [`DurationError`], which quotes the text and says what to write instead.
///
/// Source: Go's `time.ParseDuration`; the further units are the Katalog language's.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(DurationError::Empty);
    }
    if trimmed == "0" {
        return Ok(Duration::ZERO);
    }
    let syntax = || DurationError::Syntax(trimmed.to_owned());
    let too_long = || DurationError::TooLong(trimmed.to_owned());
    let mut rest = trimmed;
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        if unit.is_empty() && rest.len() == trimmed.len() {
            return Err(DurationError::NoUnit(number.to_owned()));
        }
        let (_, scale) = UNITS
            .iter()
            .chain([&YEAR])
            .find(|(name, _)| *name == unit)
            .ok_or_else(syntax)?;
        nanos = nanos
            .checked_add(scaled(number, *scale).ok_or_else(syntax)?)
            .filter(|n| *n <= LONGEST_NANOS)
            .ok_or_else(too_long)?;
        rest = next;
    }
    let seconds = u64::try_from(nanos / 1_000_000_000).map_err(|_| too_long())?;
    let below = u32::try_from(nanos % 1_000_000_000).map_err(|_| too_long())?;
    Ok(Duration::new(seconds, below))
}

/// The duration that a text in another notation means: `5 minutes`, `90sec`, `1 hour 30 min`, `PT5M`.
pub fn meant(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase();
    let lower = lower.strip_prefix("pt").unwrap_or(&lower);
    let mut out = String::new();
    let mut rest = lower.trim_start();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start_matches([' ', '-', '_']);
        let letters = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        let (_, ours) = WORDS.iter().find(|(words, _)| words.contains(&unit))?;
        out.push_str(number);
        out.push_str(ours);
        rest = next.trim_start_matches([' ', ',']);
    }
    parse(&out).ok().map(|_| out)
}

/// Units as people and other programs write them, and ours.
const WORDS: [(&[&str], &str); 6] = [
    (
        &["ms", "msec", "millis", "millisecond", "milliseconds"],
        "ms",
    ),
    (&["s", "sec", "secs", "second", "seconds"], "s"),
    (&["m", "min", "mins", "minute", "minutes"], "m"),
    (&["h", "hr", "hrs", "hour", "hours"], "h"),
    (&["d", "day", "days"], "d"),
    (&["w", "wk", "week", "weeks"], "w"),
];

/// `number` times `scale`, where `number` is digits with at most one point. Saturates: the caller
/// refuses what is too long. Digits below a nanosecond are dropped.
fn scaled(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let mut total: u128 = 0;
    for digit in whole.bytes() {
        total = total
            .saturating_mul(10)
            .saturating_add(u128::from(digit - b'0'));
    }
    total = total.saturating_mul(scale);
    let mut unit = scale;
    for digit in fraction.bytes() {
        unit /= 10;
        total = total.saturating_add(unit * u128::from(digit - b'0'));
    }
    Some(total)
}

/// Prints a duration in Go's form with the largest exact units: `1h30m`, `500ms`, `0s`.
pub fn format(duration: Duration) -> String {
    let mut nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    let mut out = String::new();
    for (unit, scale) in UNITS
        .iter()
        .rev()
        .filter(|(unit, _)| matches!(*unit, "h" | "m" | "s" | "ms" | "us" | "ns"))
    {
        if nanos >= *scale {
            out.push_str(&(nanos / scale).to_string());
            out.push_str(unit);
            nanos %= scale;
        }
    }
    out
}

/// A duration in a Katalog, written as text: `30s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format(self.0))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = super::scalar::Text::deserialize(deserializer)?;
        parse(&text).map(Span).map_err(de::Error::custom)
    }
}

impl JsonSchema for Span {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", FORMAT: "duration" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_forms_and_longer_units_are_read() {
        for (text, millis) in [
            ("0", 0),
            ("0s", 0),
            ("500ms", 500),
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            (".5s", 500),
            ("1d", 86_400_000),
            ("2w", 1_209_600_000),
            ("1mo", 2_592_000_000),
            ("1y", 31_536_000_000),
            ("1mo1m1ms", 2_592_060_001),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_a_reason() {
        assert_eq!(parse(" "), Err(DurationError::Empty));
        assert_eq!(parse("30"), Err(DurationError::NoUnit("30".into())));
        for text in ["-5s", "5 s", "s", ".s", "1..5s", "1h30", "5min", "\u{665}s"] {
            assert!(
                matches!(parse(text), Err(DurationError::Syntax(_))),
                "{text}"
            );
        }
        for text in ["9999999999999999999999999999999999999999999y", "1001y"] {
            assert!(
                matches!(parse(text), Err(DurationError::TooLong(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn printed_durations_read_back() {
        for text in ["1h30m", "500ms", "0s", "36h", "1us5ns"] {
            assert_eq!(parse(text).map(format).as_deref(), Ok(text));
        }
    }
}
