//! The present time, timestamps and durations.
//!
//! A timestamp is RFC 3339, or a date alone for midnight UTC. A text that cannot be parsed counts as the zero value. Times
//! of the day are in UTC.

pub(crate) mod layout;

use jiff::SignedDuration;
use jiff::civil::{DateTime, Weekday};
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use orkestra_language::api::duration;
use orkestra_language::window::time_of_day;
use orkestra_object::value::Node;

/// A note that reads the present time.
const CLOCK: BuiltInNote = BuiltInNote {
    params: &[NoteType::Text],
    clock: true,
    ..PLAIN
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "timeAgo",
        doc: "The time since a timestamp, in its largest unit of seconds, minutes, hours and days.",
        example: (r#"{{ timeAgo "2026-05-08T11:58:30Z" }}"#, "1m ago"),
        result: NoteType::Text,
        run: NoteBody::Eager(time_ago),
        ..CLOCK
    },
    BuiltInNote {
        name: "timeSince",
        doc: "The whole seconds since a timestamp; negative if it is in the future.",
        example: (r#"{{ timeSince "2026-05-08T11:58:30Z" }}"#, "90"),
        result: NoteType::Int,
        run: NoteBody::Eager(time_since),
        ..CLOCK
    },
    BuiltInNote {
        name: "timeUntil",
        doc: "The time until a timestamp, in whole seconds, as a duration; `0s` if it has passed.",
        example: (r#"{{ timeUntil "2026-05-08T13:30:00Z" }}"#, "1h30m0s"),
        result: NoteType::Text,
        run: NoteBody::Eager(time_until),
        ..CLOCK
    },
    BuiltInNote {
        name: "timeFormat",
        doc: "A timestamp in a layout, written as Go's reference time, Mon Jan 2 15:04:05 MST 2006.",
        example: (
            r#"{{ timeFormat "2026-05-08" "Mon 02/01/2006" }}"#,
            "Fri 08/05/2026",
        ),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(time_format),
        ..PLAIN
    },
    BuiltInNote {
        name: "isExpired",
        doc: "True if more than a duration has passed since a timestamp; false if either is malformed.",
        example: (r#"{{ isExpired "2026-05-01" "7d" }}"#, "true"),
        min_args: 2,
        max_args: Some(2),
        result: NoteType::Bool,
        run: NoteBody::Eager(is_expired),
        ..CLOCK
    },
    BuiltInNote {
        name: "durationSeconds",
        doc: "The whole seconds of a duration such as `1h30m` or `2w`; 0 if it is malformed.",
        example: (r#"{{ durationSeconds "1w" }}"#, "604800"),
        params: &[NoteType::Text],
        result: NoteType::Int,
        run: NoteBody::Eager(duration_seconds),
        ..PLAIN
    },
    BuiltInNote {
        name: "durationAdd",
        doc: "The sum of two durations, either of which may be negative; `0s` if one is malformed.",
        example: (r#"{{ durationAdd "1h" "45m" }}"#, "1h45m0s"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Text],
        result: NoteType::Text,
        run: NoteBody::Eager(duration_add),
        ..PLAIN
    },
    BuiltInNote {
        name: "durationValid",
        doc: "True if the text is a duration: numbers with the units ns, us, ms, s, m, h, d, w, mo and y.",
        example: (
            r#"{{ durationValid "1d12h" }} {{ durationValid "3x" }}"#,
            "true false",
        ),
        params: &[NoteType::Text],
        result: NoteType::Bool,
        run: NoteBody::Eager(|call| Ok(duration_of(call, 0)?.is_some().into())),
        ..PLAIN
    },
    BuiltInNote {
        name: "weekday",
        doc: "True if the day is Monday to Friday.",
        example: ("{{ weekday }}", "true"),
        min_args: 0,
        max_args: Some(0),
        params: &[],
        result: NoteType::Bool,
        run: NoteBody::Eager(|call| Ok((!is_weekend(call)).into())),
        ..CLOCK
    },
    BuiltInNote {
        name: "weekend",
        doc: "True if the day is Saturday or Sunday.",
        example: ("{{ weekend }}", "false"),
        min_args: 0,
        max_args: Some(0),
        params: &[],
        result: NoteType::Bool,
        run: NoteBody::Eager(|call| Ok(is_weekend(call).into())),
        ..CLOCK
    },
    BuiltInNote {
        name: "timeInWindow",
        doc: "True if the time is between two times of the day, `HH:MM`, the first included and the second not. A window whose end is before its start crosses midnight.",
        example: (
            r#"{{ timeInWindow "09:00" "12:00" }} {{ timeInWindow "22:00" "12:01" }}"#,
            "false true",
        ),
        min_args: 2,
        max_args: Some(2),
        result: NoteType::Bool,
        run: NoteBody::Eager(|call| Ok(in_window(call).into())),
        ..CLOCK
    },
    BuiltInNote {
        name: "timeNotInWindow",
        doc: "The opposite of `timeInWindow`.",
        example: (r#"{{ timeNotInWindow "09:00" "12:00" }}"#, "true"),
        min_args: 2,
        max_args: Some(2),
        result: NoteType::Bool,
        run: NoteBody::Eager(|call| Ok((!in_window(call)).into())),
        ..CLOCK
    },
];

/// Parsing a timestamp or a duration costs as much as several expressions.
const STEPS_A_TIME: u64 = 8;

/// The maximum length of a duration.
const LONGEST: usize = 256;

/// More than the length of any of the short texts.
const SHORT_TEXT: usize = 64;

fn time_ago<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    call.budget.text(SHORT_TEXT)?;
    let text = age(call)?.map(|age| match age.as_secs().max(0) {
        seconds @ ..60 => format!("{seconds}s ago"),
        seconds @ ..3_600 => format!("{}m ago", seconds / 60),
        seconds @ ..86_400 => format!("{}h ago", seconds / 3_600),
        seconds => format!("{}d ago", seconds / 86_400),
    });
    Ok(Node::from(text.unwrap_or_default()).into())
}

fn time_since<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    Ok(age(call)?.map_or(0, |age| age.as_secs()).into())
}

fn time_until<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    call.budget.text(SHORT_TEXT)?;
    let text = age(call)?.map(|age| {
        let seconds = age.as_secs().min(0).unsigned_abs();
        go_text(i128::from(seconds) * NANOS)
    });
    Ok(Node::from(text.unwrap_or_default()).into())
}

fn time_format<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    call.budget.step(STEPS_A_TIME)?;
    let mut out = String::new();
    if let Some((time, offset)) = moment(call.text(0)) {
        let layout = call.take(1);
        let layout = layout.node().as_str().unwrap_or_default();
        layout::format(&mut out, time, offset, layout, call.budget)?;
    }
    Ok(Node::from(out).into())
}

fn is_expired<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let expired = age(call)?.zip(duration_of(call, 1)?);
    Ok(expired
        .is_some_and(|(age, lifetime)| age.as_nanos() > lifetime)
        .into())
}

fn duration_seconds<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let seconds = duration_of(call, 0)?.unwrap_or(0) / NANOS;
    Ok(i64::try_from(seconds).unwrap_or_default().into())
}

fn duration_add<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    call.budget.text(SHORT_TEXT)?;
    let sum = duration_of(call, 0)?
        .zip(duration_of(call, 1)?)
        .map_or(0, |(a, b)| a + b);
    Ok(Node::from(go_text(sum)).into())
}

/// Returns the time since the first argument.
fn age(call: &mut NoteCall<'_, '_>) -> Result<Option<SignedDuration>, EvalFailure> {
    call.budget.step(STEPS_A_TIME)?;
    let time = moment(call.text(0)).and_then(|(time, offset)| offset.to_timestamp(time).ok());
    Ok(time.map(|time| call.data.now().duration_since(time)))
}

/// Parses an argument as a duration in nanoseconds.
fn duration_of(call: &mut NoteCall<'_, '_>, position: usize) -> Result<Option<i128>, EvalFailure> {
    call.budget.step(STEPS_A_TIME)?;
    Ok(signed(call.text(position)))
}

fn is_weekend(call: &NoteCall<'_, '_>) -> bool {
    let today = Offset::UTC.to_datetime(call.data.now()).weekday();
    matches!(today, Weekday::Saturday | Weekday::Sunday)
}

fn in_window(call: &NoteCall<'_, '_>) -> bool {
    let (Some(from), Some(to)) = (time_of_day(call.text(0)), time_of_day(call.text(1))) else {
        return false;
    };
    let now = Offset::UTC.to_datetime(call.data.now()).time();
    if from <= to {
        (from..to).contains(&now)
    } else {
        now >= from || now < to
    }
}

/// Parses a timestamp to its local date and time and its offset from UTC.
///
/// Source: RFC 3339, section 5.6, with upper-case letters; a date alone is midnight UTC.
fn moment(text: &str) -> Option<(DateTime, Offset)> {
    let text = text.trim();
    let shape = text.bytes().take(19).map(|b| match b {
        b'0'..=b'9' => b'0',
        b => b,
    });
    let shape: Vec<u8> = shape.collect();
    let pieces = || Pieces::parse(text).ok();
    match (&*shape, text.get(19..)) {
        (b"0000-00-00", _) => Some((pieces()?.date().at(0, 0, 0, 0), Offset::UTC)),
        (b"0000-00-00T00:00:00", Some(rest)) if is_zone(rest) => {
            let pieces = pieces()?;
            let offset = pieces.to_numeric_offset()?;
            let time = pieces.date().to_datetime(pieces.time()?);
            // A time outside the supported range is not a timestamp.
            offset.to_timestamp(time).ok()?;
            Some((time, offset))
        }
        _ => None,
    }
}

/// True if the text is valid after the seconds: an optional fraction, then `Z` or an offset such as `+02:00`.
fn is_zone(text: &str) -> bool {
    let digit = |c: char| c.is_ascii_digit();
    let zone = match text.strip_prefix('.') {
        Some(fraction) if fraction.starts_with(digit) => fraction.trim_start_matches(digit),
        Some(_) => return false,
        None => text,
    };
    zone == "Z"
        || matches!(zone.as_bytes(), [b'+' | b'-', a, b, b':', c, d]
            if [a, b, c, d].iter().all(|b| b.is_ascii_digit()))
}

/// The nanoseconds in a second.
const NANOS: i128 = 1_000_000_000;

/// Parses a duration, which may be negative, to nanoseconds.
fn signed(text: &str) -> Option<i128> {
    let text = text.trim();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if text.starts_with(char::is_whitespace) || text.len() > LONGEST {
        return None;
    }
    let nanos = i128::try_from(duration::parse(text).ok()?.as_nanos()).ok()?;
    Some(if negative { -nanos } else { nanos })
}

/// Formats a duration as Go does: `1h30m0s`, `1.5s`, `250ms`, `0s`.
///
/// Source: Go's `time.Duration.String`.
pub(crate) fn go_text(nanos: i128) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let second = NANOS.unsigned_abs();
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{nanos}ns"),
        1_000..1_000_000 => format!("{sign}{}\u{b5}s", decimal(nanos, 1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", decimal(nanos, 1_000_000)),
        _ => {
            let minutes = nanos / second / 60;
            let seconds = decimal(nanos - minutes * 60 * second, second);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// Formats a number of units with decimals, without trailing zeros.
fn decimal(nanos: u128, unit: u128) -> String {
    let whole = nanos / unit;
    // The digits of the unit after its leading 1 are as many as the decimals.
    let fraction = (unit + nanos % unit).to_string();
    match fraction[1..].trim_end_matches('0') {
        "" => whole.to_string(),
        fraction => format!("{whole}.{fraction}"),
    }
}

#[cfg(test)]
mod tests;
