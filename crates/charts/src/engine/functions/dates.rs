//! Times and durations. The local time zone is UTC.

use jiff::{SignedDuration, Timestamp};
use orkestra_template::go::{self, EvalFailure};

use super::numbers::{to_f64, to_i64};
use super::{Function, Run, function, string, wrong};
use crate::engine::Engine;
use crate::value::Object;
use crate::value::Value;

pub(crate) static TABLE: &[Function] = &[
    function("now", 0, |engine, _| Ok(time_value(engine.now()))),
    function("date", 2, |engine, args| {
        format(engine, &string(&args[0])?, &args[1])
    }),
    function("htmlDate", 1, |engine, args| {
        format(engine, "2006-01-02", &args[0])
    }),
    function("htmlDateInZone", 2, |engine, args| {
        zone(&args[1])?;
        format(engine, "2006-01-02", &args[0])
    }),
    function("dateInZone", 3, in_zone),
    function("date_in_zone", 3, in_zone),
    function("dateModify", 2, modify),
    function("date_modify", 2, modify),
    function("mustDateModify", 2, modify),
    function("must_date_modify", 2, modify),
    function("unixEpoch", 1, |_, args| match &args[0] {
        Value::Object(Object::Time(time)) => Ok(Value::text(time.as_second().to_string())),
        value => Err(wrong("time.Time", value)),
    }),
    function("ago", 1, |engine, args| {
        let since = engine.now().as_second() - moment(engine, &args[0]).as_second();
        Ok(Value::text(go::duration_text(
            i128::from(since) * 1_000_000_000,
        )))
    }),
    function("duration", 1, |_, args| {
        let seconds = match &args[0] {
            Value::Str(text) => text.parse().unwrap_or(0),
            Value::Int64(n) => *n,
            _ => 0,
        };
        Ok(Value::text(go::duration_text(
            i128::from(seconds) * 1_000_000_000,
        )))
    }),
    function("durationRound", 1, round),
    function("toDate", 2, to_date),
    function("mustToDate", 2, to_date),
    function("mustToDuration", 1, |_, args| {
        let nanos = duration(&args[0]).ok_or_else(|| EvalFailure::refused("invalid duration"))?;
        Ok(Value::Object(Object::Duration(nanos)))
    }),
    function("durationSeconds", 1, {
        const RUN: Run = |_, args| part(args, 1e9);
        RUN
    }),
    function("durationMinutes", 1, {
        const RUN: Run = |_, args| part(args, 6e10);
        RUN
    }),
    function("durationHours", 1, {
        const RUN: Run = |_, args| part(args, 3.6e12);
        RUN
    }),
    function("durationDays", 1, {
        const RUN: Run = |_, args| part(args, 8.64e13);
        RUN
    }),
    function("durationWeeks", 1, {
        const RUN: Run = |_, args| part(args, 6.048e14);
        RUN
    }),
    function("durationMilliseconds", 1, |_, args| {
        Ok(Value::Int64(duration(&args[0]).unwrap_or(0) / 1_000_000))
    }),
    function("durationMicroseconds", 1, |_, args| {
        Ok(Value::Int64(duration(&args[0]).unwrap_or(0) / 1000))
    }),
    function("durationNanoseconds", 1, |_, args| {
        Ok(Value::Int64(duration(&args[0]).unwrap_or(0)))
    }),
    function("durationTruncateTo", 2, |_, args| to_multiple(args, false)),
    function("durationRoundTo", 2, |_, args| to_multiple(args, true)),
];

fn time_value(time: Timestamp) -> Value {
    Value::Object(Object::Time(time))
}

/// Converts a value to a time; the present if it is not a time.
fn moment(engine: &Engine<'_>, value: &Value) -> Timestamp {
    match value {
        Value::Object(Object::Time(time)) => *time,
        Value::Int(n) | Value::Int64(n) => Timestamp::from_second(*n).unwrap_or(engine.now()),
        _ => engine.now(),
    }
}

fn format(engine: &mut Engine<'_>, layout: &str, value: &Value) -> Result<Value, EvalFailure> {
    let time = moment(engine, value);
    go::format_time(time, layout, engine.budget_mut()).map(Value::text)
}

/// Checks a time zone: UTC by any of its names.
fn zone(value: &Value) -> Result<(), EvalFailure> {
    let zone = string(value)?;
    if matches!(&*zone, "" | "UTC" | "Local" | "Etc/UTC" | "GMT") {
        return Ok(());
    }
    Err(EvalFailure::refused(format!(
        "time zone {zone:?} is not supported; use \"UTC\""
    )))
}

fn in_zone(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    zone(&args[2])?;
    format(engine, &string(&args[0])?, &args[1])
}

/// Parses a duration in Go's form: `1h30m`, `-2.5s`.
fn parse_duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let units = [
            ("ns", 1.0),
            ("us", 1e3),
            ("µs", 1e3),
            ("ms", 1e6),
            ("s", 1e9),
            ("m", 6e10),
            ("h", 3.6e12),
        ];
        let (unit, nanos) = units.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
        rest = &rest[unit.len()..];
        total += number * nanos;
    }
    in_range(sign * total)
}

#[expect(clippy::cast_possible_truncation, reason = "checked before")]
fn in_range(nanos: f64) -> Option<i64> {
    (nanos.abs() < 9.2e18).then(|| nanos.round() as i64)
}

/// Converts a value to a duration, in nanoseconds. Numbers are seconds.
fn duration(value: &Value) -> Option<i64> {
    match value {
        Value::Object(Object::Duration(nanos)) => Some(*nanos),
        Value::Str(text) => {
            let text = text.trim();
            let seconds = || text.parse::<f64>().ok().and_then(|n| in_range(n * 1e9));
            parse_duration(text).or_else(seconds)
        }
        Value::Int(n) | Value::Int64(n) => n.checked_mul(1_000_000_000),
        Value::Float(_) => in_range(to_f64(value) * 1e9),
        _ => None,
    }
}

fn modify(_: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let text = string(&args[0])?;
    let Value::Object(Object::Time(time)) = &args[1] else {
        return Err(wrong("time.Time", &args[1]));
    };
    let by = parse_duration(&text).map_or(SignedDuration::ZERO, SignedDuration::from_nanos);
    let moved = time.checked_add(by);
    moved
        .map(time_value)
        .map_err(|_| EvalFailure::refused("time out of range"))
}

#[expect(clippy::cast_precision_loss, reason = "as Go does")]
fn part(args: &[Value], unit: f64) -> Result<Value, EvalFailure> {
    Ok(Value::Float(duration(&args[0]).unwrap_or(0) as f64 / unit))
}

fn to_multiple(args: &[Value], round: bool) -> Result<Value, EvalFailure> {
    let Some(nanos) = duration(&args[0]) else {
        return Ok(Value::Object(Object::Duration(0)));
    };
    let result = match duration(&args[1]).filter(|unit| *unit > 0) {
        Some(unit) => {
            let rest = nanos % unit;
            let down = nanos - rest;
            let up = round && rest.unsigned_abs() >= unit.unsigned_abs().div_ceil(2);
            if up {
                down.saturating_add(unit * rest.signum())
            } else {
                down
            }
        }
        None => nanos,
    };
    Ok(Value::Object(Object::Duration(result)))
}

/// Units of time in seconds, the longest first.
const UNITS: [(u64, &str); 6] = [
    (365 * 86_400, "y"),
    (30 * 86_400, "mo"),
    (86_400, "d"),
    (3600, "h"),
    (60, "m"),
    (1, "s"),
];

fn round(engine: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let nanos = match &args[0] {
        Value::Str(text) => parse_duration(text).unwrap_or(0),
        Value::Int64(_) => to_i64(&args[0]),
        Value::Object(Object::Time(time)) => {
            let since = engine.now().as_nanosecond() - time.as_nanosecond();
            i64::try_from(since).unwrap_or(0)
        }
        _ => 0,
    };
    let size = nanos.unsigned_abs();
    let unit = UNITS
        .iter()
        .find(|(seconds, _)| size > seconds * 1_000_000_000);
    Ok(Value::text(
        unit.map_or("0s".to_owned(), |(seconds, unit)| {
            format!("{}{unit}", size / (seconds * 1_000_000_000))
        }),
    ))
}

/// Parses a text as a time. The layout is a date or RFC 3339.
fn to_date(_: &mut Engine<'_>, args: &[Value]) -> Result<Value, EvalFailure> {
    let (layout, text) = (string(&args[0])?, string(&args[1])?);
    let strptime = match &*layout {
        "2006-01-02" => "%Y-%m-%d",
        "2006-01-02 15:04:05" => "%Y-%m-%d %H:%M:%S",
        "2006-01-02T15:04:05" => "%Y-%m-%dT%H:%M:%S",
        "02/01/2006" => "%d/%m/%Y",
        "01/02/2006" => "%m/%d/%Y",
        "2006-01-02T15:04:05Z07:00" | "2006-01-02T15:04:05Z" => "",
        layout => {
            let message = format!("layout {layout:?} is not supported for reading a date");
            return Err(EvalFailure::refused(message));
        }
    };
    let read = match strptime {
        "" => text.parse().ok(),
        "%Y-%m-%d" | "%d/%m/%Y" | "%m/%d/%Y" => jiff::civil::Date::strptime(strptime, &*text)
            .ok()
            .and_then(|date| jiff::tz::Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()),
        strptime => jiff::civil::DateTime::strptime(strptime, &*text)
            .ok()
            .and_then(|date| jiff::tz::Offset::UTC.to_timestamp(date).ok()),
    };
    let read = read
        .ok_or_else(|| EvalFailure::refused(format!("{text:?} is not of the layout {layout:?}")))?;
    Ok(time_value(read))
}
