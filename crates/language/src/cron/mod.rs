//! Cron expressions: `0 2 * * mon-fri`.
//!
//! ```text
//!  text ── fields ──► five texts ── Schedule::parse ──► Schedule ── next(after) ──► Timestamp
//! ```
//!
//! Source: crontab(5) for syntax and meaning; ranges, names and steps as in Kubernetes (robfig/cron v3, `ParseStandard`), so
//! Sunday is 0 and not 7. Time zones are not supported: a schedule is in UTC.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use jiff::{Timestamp, ToSpan};

/// The predefined schedules, in lower case.
const MACROS: [(&str, [&str; 5]); 7] = [
    ("@yearly", ["0", "0", "1", "1", "*"]),
    ("@annually", ["0", "0", "1", "1", "*"]),
    ("@monthly", ["0", "0", "1", "*", "*"]),
    ("@weekly", ["0", "0", "*", "*", "0"]),
    ("@daily", ["0", "0", "*", "*", "*"]),
    ("@midnight", ["0", "0", "*", "*", "*"]),
    ("@hourly", ["0", "*", "*", "*", "*"]),
];

/// The range of a field.
struct Field {
    name: &'static str,
    least: u8,
    most: u8,
    /// Names of the values from `least` upwards, in lower case.
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field {
        name: "minute",
        least: 0,
        most: 59,
        names: &[],
    },
    Field {
        name: "hour",
        least: 0,
        most: 23,
        names: &[],
    },
    Field {
        name: "day of the month",
        least: 1,
        most: 31,
        names: &[],
    },
    Field {
        name: "month",
        least: 1,
        most: 12,
        names: &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    },
    Field {
        name: "day of the week",
        least: 0,
        most: 6,
        names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    },
];

/// Longer texts are not valid schedules.
const LONGEST: usize = 1024;

/// Years after which every date has occurred: 8 years, if a century has no leap day.
const MOST_YEARS: i16 = 8;

/// Why a text is not a valid schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// There are not five fields, and it is not a predefined schedule.
    #[error("a schedule has five fields, such as `0 2 * * *`, or is a name such as `@daily`")]
    Fields,
    /// A field is not valid, or out of its range.
    #[error("the {name} of a schedule is {least} to {most}, with lists, ranges and steps such as `{least},{}-{most}/2`", least + 1)]
    Field {
        /// The field's name.
        name: &'static str,
        /// The lowest value.
        least: u8,
        /// The highest value.
        most: u8,
    },
}

/// Splits an expression into its five fields: minute, hour, day of the month, month, day of the week. Predefined schedules such
/// as `@daily`, in any case, are replaced by their fields. `None` if there are not five fields, or if the text is longer than 1
/// KiB; [`Schedule::parse`] validates the fields.
pub fn fields(text: &str) -> Option<[&str; 5]> {
    let trimmed = text.trim();
    if trimmed.len() > LONGEST {
        return None;
    }
    let named = MACROS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(trimmed));
    if let Some((_, fields)) = named {
        return Some(*fields);
    }
    let mut words = trimmed.split_whitespace();
    let mut fields = [""; 5];
    for field in &mut fields {
        *field = words.next()?;
    }
    words.next().is_none().then_some(fields)
}

/// A parsed cron expression: the set of minutes that it selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The values of each field, as bits, in the order of the fields.
    values: [u64; 5],
    /// Whether one of the two day fields is enough to select a day: both are restricted. Otherwise both have to match.
    either_day: bool,
}

impl Schedule {
    /// Parses an expression of five fields, or a predefined schedule, see [`fields`].
    ///
    /// A field is a comma-separated list of `*`, `?`, values and ranges (`1-5`), each with or without a step (`*/15`, `8-18/2`,
    /// `5/10`); months and days of the week can be given as three-letter names.
    ///
    /// # Errors
    /// [`CronError`]: there are not five fields, or one is malformed or out of range.
    pub fn parse(text: &str) -> Result<Schedule, CronError> {
        let texts = fields(text).ok_or(CronError::Fields)?;
        let mut values = [0; 5];
        let mut stars = [false; 5];
        for (at, (field, text)) in FIELDS.iter().zip(texts).enumerate() {
            let &Field {
                name, least, most, ..
            } = field;
            (values[at], stars[at]) =
                field
                    .read(text)
                    .ok_or(CronError::Field { name, least, most })?;
        }
        let [_, _, any_day, _, any_weekday] = stars;
        Ok(Schedule {
            values,
            either_day: !any_day && !any_weekday,
        })
    }

    /// Returns the first time after `after` that the schedule selects, in UTC; `None` if there is none, as for February 30.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = Offset::UTC.to_datetime(after);
        let minute = after
            .time()
            .with()
            .second(0)
            .subsec_nanosecond(0)
            .build()
            .ok()?;
        let start = after
            .date()
            .to_datetime(minute)
            .checked_add(1.minute())
            .ok()?;
        let last_year = start.year().saturating_add(MOST_YEARS);
        let mut date = start.date();
        let mut from = start.time();
        while date.year() <= last_year {
            if !self.names(3, date.month()) {
                date = date.last_of_month().tomorrow().ok()?;
                from = Time::midnight();
                continue;
            }
            if self.has_day(date)
                && let Some(time) = self.first_time(from)
            {
                return Offset::UTC
                    .to_timestamp(DateTime::from_parts(date, time))
                    .ok();
            }
            date = date.tomorrow().ok()?;
            from = Time::midnight();
        }
        None
    }

    fn names(&self, field: usize, value: i8) -> bool {
        self.values[field] >> value & 1 == 1
    }

    fn has_day(&self, date: Date) -> bool {
        let day = self.names(2, date.day());
        let weekday = self.names(4, date.weekday().to_sunday_zero_offset());
        if self.either_day {
            day || weekday
        } else {
            day && weekday
        }
    }

    /// Returns the first time of a day, at `from` or later.
    fn first_time(&self, from: Time) -> Option<Time> {
        let [minutes, hours, ..] = self.values;
        let this_hour = first_bit(minutes, from.minute()).filter(|_| self.names(1, from.hour()));
        if let Some(minute) = this_hour {
            return Time::new(from.hour(), minute, 0, 0).ok();
        }
        let hour = first_bit(hours, from.hour() + 1)?;
        Time::new(hour, first_bit(minutes, 0)?, 0, 0).ok()
    }
}

/// Returns the lowest bit that is set, starting at `from`.
fn first_bit(bits: u64, from: i8) -> Option<i8> {
    let rest = bits >> from << from;
    (rest != 0).then(|| i8::try_from(rest.trailing_zeros()).ok())?
}

impl Field {
    /// Returns the values as bits, and whether the field is unrestricted.
    fn read(&self, text: &str) -> Option<(u64, bool)> {
        let mut bits = 0;
        let mut star = false;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(number(step).filter(|n| *n > 0)?)),
                None => (part, None),
            };
            let (from, to) = match range {
                "*" | "?" => {
                    star |= step.is_none_or(|step| step == 1);
                    (self.least, self.most)
                }
                range => self.range(range, step.is_some())?,
            };
            let values = (from..=to).step_by(step.unwrap_or(1).into());
            bits |= values.fold(0, |bits, value| bits | 1 << value);
        }
        Some((bits, star))
    }

    /// Parses `1-5`, or `5`, which with a step extends to the maximum.
    fn range(&self, text: &str, open: bool) -> Option<(u8, u8)> {
        let (from, to) = match text.split_once('-') {
            Some((from, to)) => (self.value(from)?, self.value(to)?),
            None if open => (self.value(text)?, self.most),
            None => (self.value(text)?, self.value(text)?),
        };
        (from <= to).then_some((from, to))
    }

    fn value(&self, text: &str) -> Option<u8> {
        let named = |name: &&str| name.eq_ignore_ascii_case(text);
        let value = match self.names.iter().position(named) {
            Some(at) => self.least + u8::try_from(at).ok()?,
            None => number(text)?,
        };
        (self.least..=self.most).contains(&value).then_some(value)
    }
}

fn number(text: &str) -> Option<u8> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

#[cfg(test)]
mod tests;
