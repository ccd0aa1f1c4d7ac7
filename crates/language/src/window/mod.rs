//! Time windows: parts of a day, days of the week, a duration after each time of a schedule.
//!
//! All are in UTC, include their start and exclude their end, and report when their result changes.

use std::time::Duration;

use jiff::{
    Timestamp, ToSpan,
    civil::{Time, Weekday},
    tz::Offset,
};

use crate::cron::Schedule;

/// The result of a window at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowState {
    /// Whether the time is inside the window.
    pub holds: bool,
    /// Until when the result stays the same; `None` is forever. It may change at that time.
    pub until: Option<Timestamp>,
}

/// A part of each day. If its end is before its start, it extends over midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Daily {
    /// The start; `None` is midnight.
    pub after: Option<Time>,
    /// The end; `None` is the next midnight.
    pub before: Option<Time>,
}

impl Daily {
    /// Returns the result at `now`.
    pub fn look(self, now: Timestamp) -> WindowState {
        let time = Offset::UTC.to_datetime(now).time();
        WindowState {
            holds: self.has(time),
            until: self.turn(now),
        }
    }

    fn has(self, time: Time) -> bool {
        let from = self.after.unwrap_or_else(Time::midnight);
        match self.before {
            None => time >= from,
            Some(to) if from <= to => (from..to).contains(&time),
            Some(to) => time >= from || time < to,
        }
    }

    /// Returns the next time after `now` at which the result changes.
    fn turn(self, now: Timestamp) -> Option<Timestamp> {
        let edges = [self.after, self.before].into_iter().flatten();
        let edges = edges.chain([Time::midnight()]);
        let now_there = Offset::UTC.to_datetime(now);
        let holds = self.has(now_there.time());
        edges
            .filter(|edge| self.has(*edge) != holds)
            .filter_map(|edge| {
                let date = if edge > now_there.time() {
                    now_there.date()
                } else {
                    now_there.date().tomorrow().ok()?
                };
                Offset::UTC.to_timestamp(date.to_datetime(edge)).ok()
            })
            .min()
    }
}

/// Days of the week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Days(u8);

/// The English names, Sunday first.
const NAMES: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

impl Days {
    /// Monday to Friday.
    pub const WEEKDAYS: Days = Days(0b011_1110);
    /// Saturday and Sunday.
    pub const WEEKEND: Days = Days(0b100_0001);

    /// Returns the day with that English name, in any case.
    pub fn named(name: &str) -> Option<Days> {
        let is_it = |known: &&str| known.eq_ignore_ascii_case(name.trim());
        NAMES.iter().position(is_it).map(|day| Days(1 << day))
    }

    /// Returns the valid names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.into_iter()
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn and(self, other: Days) -> Days {
        Days(self.0 | other.0)
    }

    /// Returns all other days.
    #[must_use]
    pub fn others(self) -> Days {
        Days(!self.0 & 0b111_1111)
    }

    /// Returns the days as bits, with Sunday the lowest.
    pub fn bits(self) -> u8 {
        self.0
    }

    fn has(self, day: Weekday) -> bool {
        self.0 >> day.to_sunday_zero_offset() & 1 == 1
    }

    /// Returns the result at `now`.
    pub fn look(self, now: Timestamp) -> WindowState {
        let today = Offset::UTC.to_datetime(now).date();
        let holds = self.has(today.weekday());
        let turn = (1..=7_i64).find_map(|ahead| {
            let day = today.checked_add(ahead.days()).ok()?;
            let turned = self.has(day.weekday()) != holds;
            turned.then(|| {
                Offset::UTC
                    .to_timestamp(day.to_datetime(Time::midnight()))
                    .ok()
            })?
        });
        WindowState { holds, until: turn }
    }
}

/// The most consecutive or overlapping windows that are joined: the result is then evaluated again at the end of the last one.
const MOST_JOINED: usize = 8;

/// Returns the result at `now` of windows of that length after each time of a schedule.
pub fn after_each(schedule: &Schedule, length: Duration, now: Timestamp) -> WindowState {
    let Some(mut end) = last_end(schedule, length, now) else {
        return WindowState {
            holds: false,
            until: schedule.next(now),
        };
    };
    for _ in 0..MOST_JOINED {
        match last_end(schedule, length, end) {
            Some(later) if later > end => end = later,
            _ => break,
        }
    }
    WindowState {
        holds: true,
        until: Some(end),
    }
}

/// Returns the end of the most recent window, if one is open at `now`.
fn last_end(schedule: &Schedule, length: Duration, now: Timestamp) -> Option<Timestamp> {
    let is_fired = |after: Timestamp| schedule.next(after).filter(|fired| *fired <= now);
    let mut last = is_fired(now.checked_sub(length).unwrap_or(Timestamp::MIN))?;
    // A schedule has whole minutes: bisection finds the last time. None is after `none_after`.
    let mut none_after = now.as_second();
    while none_after - last.as_second() >= 60 {
        let middle = i64::midpoint(last.as_second(), none_after);
        match is_fired(Timestamp::from_second(middle).ok()?) {
            Some(later) => last = later,
            None => none_after = middle,
        }
    }
    last.checked_add(length).ok()
}

/// Parses `HH:MM`; the hour may have one digit.
pub fn time_of_day(text: &str) -> Option<Time> {
    let (hour, minute) = text.trim().split_once(':')?;
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let sound = digits(hour) && digits(minute) && hour.len() <= 2 && minute.len() == 2;
    let sound = sound.then(|| Some((hour.parse().ok()?, minute.parse().ok()?)))?;
    let (hour, minute) = sound?;
    Time::new(hour, minute, 0, 0).ok()
}

#[cfg(test)]
mod tests;
