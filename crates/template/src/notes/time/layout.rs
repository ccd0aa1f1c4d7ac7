//! Go's layouts: a text that shows the form of the reference time, Mon Jan 2 15:04:05 MST 2006.
//!
//! Source: Go's package time, "Constants" and `Time.Format`.

use jiff::civil::{DateTime, Weekday};
use jiff::tz::Offset;

use crate::budget::EvalBudget;
use crate::error::EvalFailure;
use crate::print;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// From Monday.
const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// An element of a layout that stands for a part of the time.
#[derive(Clone, Copy)]
enum Element {
    LongMonth,
    Month,
    /// A number and its padding.
    Number(Number, Fill),
    LongDay,
    Day,
    /// `PM` or `pm`.
    Half(bool),
    /// `MST`
    ZoneName,
    Offset(OffsetForm),
}

#[derive(Clone, Copy)]
enum Number {
    Month,
    Day,
    YearDay,
    Hour,
    Hour12,
    Minute,
    Second,
    Year,
    ShortYear,
}

#[derive(Clone, Copy)]
enum Fill {
    None,
    Zeros(usize),
    Spaces(usize),
}

/// The form of an offset from UTC.
#[derive(Clone, Copy)]
struct OffsetForm {
    /// True if UTC is written as `Z`.
    z: bool,
    /// True if colons separate the parts.
    colons: bool,
    /// 1 for hours, 2 for hours and minutes, 3 for hours, minutes and seconds.
    parts: usize,
}

use Element::{Day, Half, LongDay, LongMonth, Month, ZoneName};

const fn number(number: Number, fill: Fill) -> Element {
    Element::Number(number, fill)
}

const fn offset(z: bool, colons: bool, parts: usize) -> Element {
    Element::Offset(OffsetForm { z, colons, parts })
}

/// The elements by their text. An element precedes those that are a prefix of it.
const ELEMENTS: &[(&str, Element)] = &[
    ("January", LongMonth),
    ("Jan", Month),
    ("Monday", LongDay),
    ("Mon", Day),
    ("MST", ZoneName),
    ("002", number(Number::YearDay, Fill::Zeros(3))),
    ("01", number(Number::Month, Fill::Zeros(2))),
    ("02", number(Number::Day, Fill::Zeros(2))),
    ("03", number(Number::Hour12, Fill::Zeros(2))),
    ("04", number(Number::Minute, Fill::Zeros(2))),
    ("05", number(Number::Second, Fill::Zeros(2))),
    ("06", number(Number::ShortYear, Fill::Zeros(2))),
    ("15", number(Number::Hour, Fill::Zeros(2))),
    ("1", number(Number::Month, Fill::None)),
    ("2006", number(Number::Year, Fill::Zeros(4))),
    ("2", number(Number::Day, Fill::None)),
    ("__2", number(Number::YearDay, Fill::Spaces(3))),
    ("_2", number(Number::Day, Fill::Spaces(2))),
    ("3", number(Number::Hour12, Fill::None)),
    ("4", number(Number::Minute, Fill::None)),
    ("5", number(Number::Second, Fill::None)),
    ("PM", Half(true)),
    ("pm", Half(false)),
    ("-070000", offset(false, false, 3)),
    ("-07:00:00", offset(false, true, 3)),
    ("-0700", offset(false, false, 2)),
    ("-07:00", offset(false, true, 2)),
    ("-07", offset(false, false, 1)),
    ("Z070000", offset(true, false, 3)),
    ("Z07:00:00", offset(true, true, 3)),
    ("Z0700", offset(true, false, 2)),
    ("Z07:00", offset(true, true, 2)),
    ("Z07", offset(true, false, 1)),
];

/// Finding and writing an element cost as much as several expressions.
const STEPS_AN_ELEMENT: u64 = 4;

/// Formats a time in a layout.
pub(crate) fn format(
    out: &mut String,
    time: DateTime,
    offset: Offset,
    layout: &str,
    budget: &mut EvalBudget,
) -> Result<(), EvalFailure> {
    let mut rest = layout;
    while let Some(first) = rest.chars().next() {
        budget.step(STEPS_AN_ELEMENT)?;
        if let Some((length, text)) = fraction(rest, time) {
            print::append(out, &text, budget)?;
            rest = &rest[length..];
        } else if let Some((text, element)) = element(rest) {
            print::append(out, &write(element, time, offset), budget)?;
            rest = &rest[text.len()..];
        } else {
            print::append(out, first.encode_utf8(&mut [0; 4]), budget)?;
            rest = &rest[first.len_utf8()..];
        }
    }
    Ok(())
}

/// Returns the element at the start of a layout.
fn element(layout: &str) -> Option<(&'static str, Element)> {
    // Here the underscore is literal text, and the year follows it.
    if layout.starts_with("_2006") {
        return None;
    }
    let lower_follows = |text: &str| {
        let after = layout.as_bytes().get(text.len());
        after.is_some_and(u8::is_ascii_lowercase)
    };
    let found = ELEMENTS.iter().find(|(text, element)| match element {
        // These may be the start of a word.
        Month | Day => layout.starts_with(text) && !lower_follows(text),
        _ => layout.starts_with(text),
    });
    found.copied()
}

/// The fraction of a second at the start of a layout, `.000` or `,999`: its length and its text. Nines drop trailing zeros.
fn fraction(layout: &str, time: DateTime) -> Option<(usize, String)> {
    let digits = layout.strip_prefix(['.', ','])?;
    let fill = digits.chars().next().filter(|c| matches!(c, '0' | '9'))?;
    let after = digits.trim_start_matches(fill);
    if after.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let count = digits.len() - after.len();
    let all = format!("{:09}", time.subsec_nanosecond());
    let shown = &all[..count.min(all.len())];
    let shown = if fill == '9' {
        shown.trim_end_matches('0')
    } else {
        shown
    };
    let text = match shown {
        "" => String::new(),
        shown => format!("{}{shown}", &layout[..1]),
    };
    Some((1 + count, text))
}

fn write(element: Element, time: DateTime, offset: Offset) -> String {
    let month = || MONTHS[usize::from(time.month().unsigned_abs() - 1)];
    let day = || DAYS[weekday(time.weekday())];
    match element {
        Element::LongMonth => month().to_owned(),
        Element::Month => month()[..3].to_owned(),
        Element::LongDay => day().to_owned(),
        Element::Day => day()[..3].to_owned(),
        Element::Half(capital) => match (time.hour() >= 12, capital) {
            (true, true) => "PM".to_owned(),
            (true, false) => "pm".to_owned(),
            (false, true) => "AM".to_owned(),
            (false, false) => "am".to_owned(),
        },
        Element::Number(number, fill) => {
            let number = value(number, time);
            match fill {
                Fill::None => number.to_string(),
                Fill::Zeros(width) => format!("{number:0width$}"),
                Fill::Spaces(width) => format!("{number:width$}"),
            }
        }
        Element::ZoneName if offset == Offset::UTC => "UTC".to_owned(),
        // A zone that is only an offset has no name.
        Element::ZoneName => distance(
            offset,
            OffsetForm {
                z: false,
                colons: false,
                parts: 2,
            },
        ),
        Element::Offset(form) => distance(offset, form),
    }
}

fn weekday(day: Weekday) -> usize {
    usize::from(day.to_monday_zero_offset().unsigned_abs())
}

fn value(number: Number, time: DateTime) -> i16 {
    match number {
        Number::Month => time.month().into(),
        Number::Day => time.day().into(),
        Number::YearDay => time.day_of_year(),
        Number::Hour => time.hour().into(),
        Number::Hour12 => match time.hour() % 12 {
            0 => 12,
            hour => hour.into(),
        },
        Number::Minute => time.minute().into(),
        Number::Second => time.second().into(),
        Number::Year => time.year(),
        Number::ShortYear => time.year() % 100,
    }
}

fn distance(offset: Offset, form: OffsetForm) -> String {
    if form.z && offset == Offset::UTC {
        return "Z".to_owned();
    }
    let sign = if offset.is_negative() { '-' } else { '+' };
    let seconds = offset.seconds().unsigned_abs();
    let parts = [seconds / 3600, seconds / 60 % 60, seconds % 60];
    let parts = parts[..form.parts].iter().map(|part| format!("{part:02}"));
    let separator = if form.colons { ":" } else { "" };
    format!("{sign}{}", parts.collect::<Vec<_>>().join(separator))
}
