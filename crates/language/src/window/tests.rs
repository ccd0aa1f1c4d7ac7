use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn daily(after: &str, before: &str) -> Daily {
    Daily {
        after: time_of_day(after),
        before: time_of_day(before),
    }
}

fn look(holds: bool, until: &str) -> WindowState {
    WindowState {
        holds,
        until: (!until.is_empty()).then(|| at(until)),
    }
}

#[test]
fn a_part_of_a_day_holds_from_its_first_moment_to_before_its_last() {
    let office = daily("09:00", "17:00");
    for (now, holds, until) in [
        ("2026-03-02T08:59:59.999Z", false, "2026-03-02T09:00:00Z"),
        ("2026-03-02T09:00:00Z", true, "2026-03-02T17:00:00Z"),
        ("2026-03-02T16:59:59.999Z", true, "2026-03-02T17:00:00Z"),
        ("2026-03-02T17:00:00Z", false, "2026-03-03T09:00:00Z"),
    ] {
        assert_eq!(office.look(at(now)), look(holds, until), "{now}");
    }
}

#[test]
fn a_part_that_ends_before_it_begins_goes_over_midnight() {
    let night = daily("22:00", "6:00");
    for (now, holds, until) in [
        ("2026-12-31T21:00:00Z", false, "2026-12-31T22:00:00Z"),
        ("2026-12-31T23:30:00Z", true, "2027-01-01T06:00:00Z"),
        ("2027-01-01T00:00:00Z", true, "2027-01-01T06:00:00Z"),
        ("2027-01-01T06:00:00Z", false, "2027-01-01T22:00:00Z"),
    ] {
        assert_eq!(night.look(at(now)), look(holds, until), "{now}");
    }
}

#[test]
fn one_side_goes_to_midnight() {
    let from = daily("09:00", "");
    assert_eq!(
        from.look(at("2026-03-02T12:00:00Z")),
        look(true, "2026-03-03T00:00:00Z")
    );
    assert_eq!(
        from.look(at("2026-03-03T00:00:00Z")),
        look(false, "2026-03-03T09:00:00Z")
    );
    let to = daily("", "09:00");
    assert_eq!(
        to.look(at("2026-03-02T12:00:00Z")),
        look(false, "2026-03-03T00:00:00Z")
    );
    let always = daily("", "");
    assert_eq!(always.look(at("2026-03-02T12:00:00Z")), look(true, ""));
}

#[test]
fn days_turn_at_midnight() {
    // 2026-03-06 is a Friday.
    assert_eq!(
        Days::WEEKDAYS.look(at("2026-03-06T23:59:59Z")),
        look(true, "2026-03-07T00:00:00Z")
    );
    assert_eq!(
        Days::WEEKEND.look(at("2026-03-06T23:59:59Z")),
        look(false, "2026-03-07T00:00:00Z")
    );
    assert_eq!(
        Days::WEEKDAYS.look(at("2026-03-07T00:00:00Z")),
        look(false, "2026-03-09T00:00:00Z")
    );
    let wednesday = Days::named(" WednesDay").unwrap();
    assert_eq!(
        wednesday.look(at("2026-03-05T10:00:00Z")),
        look(false, "2026-03-11T00:00:00Z")
    );
    assert_eq!(Days::named("wed"), None);
    assert_eq!(
        Days::default().look(at("2026-03-05T10:00:00Z")),
        look(false, "")
    );
}

#[test]
fn a_schedule_opens_for_a_while() {
    let nightly = Schedule::parse("0 2 * * *").unwrap();
    let hour = Duration::from_hours(1);
    for (now, holds, until) in [
        ("2026-03-02T01:59:59.5Z", false, "2026-03-02T02:00:00Z"),
        ("2026-03-02T02:00:00Z", true, "2026-03-02T03:00:00Z"),
        ("2026-03-02T02:59:59.9Z", true, "2026-03-02T03:00:00Z"),
        ("2026-03-02T03:00:00Z", false, "2026-03-03T02:00:00Z"),
    ] {
        assert_eq!(
            after_each(&nightly, hour, at(now)),
            look(holds, until),
            "{now}"
        );
    }
    let never = Schedule::parse("0 0 30 2 *").unwrap();
    assert_eq!(
        after_each(&never, hour, at("2026-03-02T02:00:00Z")),
        look(false, "")
    );
}

#[test]
fn windows_that_overlap_are_looked_at_together() {
    let schedule = Schedule::parse("0,20,40 6 * * *").unwrap();
    let half = Duration::from_mins(30);
    assert_eq!(
        after_each(&schedule, half, at("2026-03-02T06:05:00Z")),
        look(true, "2026-03-02T07:10:00Z")
    );
    let always = Schedule::parse("* * * * *").unwrap();
    let found = after_each(
        &always,
        Duration::from_hours(24),
        at("2026-03-02T06:05:30Z"),
    );
    assert!(
        found.holds && found.until.unwrap() > at("2026-03-08T00:00:00Z"),
        "{found:?}"
    );
}

/// Checks that the result does not change before `until`: at a time in between, and one nanosecond before.
fn stays(
    look_at: impl Fn(Timestamp) -> WindowState,
    now: Timestamp,
    part: f64,
) -> Result<(), TestCaseError> {
    let said = look_at(now);
    let Some(until) = said.until else {
        for days in 1..40 {
            let later = now.checked_add((days * 24).hours()).unwrap();
            prop_assert_eq!(look_at(later).holds, said.holds);
        }
        return Ok(());
    };
    prop_assert!(until > now);
    let nanos = until.as_nanosecond() - now.as_nanosecond();
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
    let between = now.as_nanosecond() + (nanos as f64 * part) as i128;
    let between = Timestamp::from_nanosecond(between.min(until.as_nanosecond() - 1)).unwrap();
    prop_assert_eq!(
        look_at(between).holds,
        said.holds,
        "the result changed at {}",
        between
    );
    let last = Timestamp::from_nanosecond(until.as_nanosecond() - 1).unwrap();
    prop_assert_eq!(
        look_at(last).holds,
        said.holds,
        "changed just before the end, at {}",
        last
    );
    Ok(())
}

fn moments() -> impl Strategy<Value = Timestamp> {
    (1_700_000_000_i64..1_900_000_000, 0_i32..1_000_000_000)
        .prop_map(|(second, nano)| Timestamp::new(second, nano).unwrap())
}

fn times() -> impl Strategy<Value = Option<Time>> {
    proptest::option::of((0_i8..24, 0_i8..60).prop_map(|(h, m)| Time::new(h, m, 0, 0).unwrap()))
}

proptest! {
    #[test]
    fn no_answer_changes_before_the_moment_that_is_reported(
        now in moments(), part in 0.0..1.0, after in times(), before in times(), days in 0_u8..128,
        cron in "(\\*|[0-9]|\\*/7|3,4,50) (\\*|[0-9]|1-4) (\\*|[1-9]|\\*/9) \\* (\\*|[0-6]|1-5)",
        minutes in 1_u64..5_000,
    ) {
        let window = Daily { after, before };
        stays(|moment| window.look(moment), now, part)?;
        stays(|moment| Days(days).look(moment), now, part)?;
        let schedule = Schedule::parse(&cron).unwrap();
        let length = Duration::from_secs(minutes * 7);
        stays(|moment| after_each(&schedule, length, moment), now, part)?;
    }

    #[test]
    fn a_schedule_is_open_exactly_after_its_moments(now in moments(), minutes in 1_i64..300) {
        let schedule = Schedule::parse("*/45 3,9 * * *").unwrap();
        let length = Duration::from_secs(u64::try_from(minutes).unwrap() * 60);
        let minute = now.as_second() / 60 * 60;
        let fired = (0..=minutes).any(|back| {
            let moment = Timestamp::from_second(minute - back * 60).unwrap();
            let before = moment.checked_sub(1.seconds()).unwrap();
            schedule.next(before) == Some(moment) && moment.checked_add(length).unwrap() > now
        });
        prop_assert_eq!(after_each(&schedule, length, now).holds, fired);
    }
}
