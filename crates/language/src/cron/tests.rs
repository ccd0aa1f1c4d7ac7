use super::*;

fn next(schedule: &str, after: &str) -> Option<String> {
    let schedule = Schedule::parse(schedule).unwrap();
    let next = schedule.next(after.parse().unwrap());
    next.map(|next| next.to_string())
}

#[test]
fn the_next_moment_is_the_first_that_every_field_names() {
    let friday = "2026-05-08T12:00:00Z";
    let cases = [
        ("* * * * *", "2026-05-08T12:01:00Z"),
        ("0 12 * * *", "2026-05-09T12:00:00Z"),
        ("30 12 * * *", "2026-05-08T12:30:00Z"),
        ("0 2 * * *", "2026-05-09T02:00:00Z"),
        ("*/15 * * * *", "2026-05-08T12:15:00Z"),
        ("5/20 * * * *", "2026-05-08T12:05:00Z"),
        ("0 8-18/5 * * *", "2026-05-08T13:00:00Z"),
        ("0 0 * * mon-wed", "2026-05-11T00:00:00Z"),
        ("0 0 * * 0", "2026-05-10T00:00:00Z"),
        ("0 0 31 * *", "2026-05-31T00:00:00Z"),
        ("0 0 31 jun,JUL *", "2026-07-31T00:00:00Z"),
        ("59 23 31 12 *", "2026-12-31T23:59:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ("@monthly", "2026-06-01T00:00:00Z"),
        ("@Weekly", "2026-05-10T00:00:00Z"),
        ("0,30 0 1 1 ?", "2027-01-01T00:00:00Z"),
    ];
    for (schedule, expected) in cases {
        assert_eq!(
            next(schedule, friday).as_deref(),
            Some(expected),
            "{schedule}"
        );
    }
}

#[test]
fn of_two_restricted_days_either_will_do_and_a_star_restricts_nothing() {
    let friday = "2026-05-08T12:00:00Z";
    let cases = [
        ("0 0 13 * 1", "2026-05-11T00:00:00Z"),
        ("0 0 9 * 1", "2026-05-09T00:00:00Z"),
        ("0 0 13 * *", "2026-05-13T00:00:00Z"),
        ("0 0 13 * */1", "2026-05-13T00:00:00Z"),
        ("0 0 13 * */2", "2026-05-09T00:00:00Z"),
        ("0 0 */1 * 1", "2026-05-11T00:00:00Z"),
    ];
    for (schedule, expected) in cases {
        assert_eq!(
            next(schedule, friday).as_deref(),
            Some(expected),
            "{schedule}"
        );
    }
}

#[test]
fn seconds_are_left_behind_and_years_are_crossed() {
    assert_eq!(
        next("* * * * *", "2026-12-31T23:59:59.999Z").as_deref(),
        Some("2027-01-01T00:00:00Z")
    );
    assert_eq!(
        next("0 0 29 2 *", "2096-02-29T00:00:00Z").as_deref(),
        Some("2104-02-29T00:00:00Z")
    );
    assert_eq!(next("0 0 30 2 *", "2026-05-08T12:00:00Z"), None);
    assert_eq!(next("* * * * *", &Timestamp::MAX.to_string()), None);
}

#[test]
fn every_next_moment_is_named_and_none_before_it() {
    let schedule = Schedule::parse("*/7 3,5 */9 2-11/3 2,4").unwrap();
    let mut at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let end: Timestamp = "2026-06-30T00:00:00Z".parse().unwrap();
    let mut expected = Vec::new();
    while at < end {
        at += 1.minute();
        let time = Offset::UTC.to_datetime(at);
        let weekday = time.weekday().to_sunday_zero_offset();
        let day = [1, 10, 19, 28].contains(&time.day()) || [2, 4].contains(&weekday);
        if day
            && time.minute() % 7 == 0
            && [3, 5].contains(&time.hour())
            && [2, 5, 8, 11].contains(&time.month())
        {
            expected.push(at);
        }
    }
    let mut found: Vec<Timestamp> = Vec::new();
    let mut at = "2026-01-01T00:00:00Z".parse().unwrap();
    while let Some(next) = schedule.next(at).filter(|next| *next <= end) {
        found.push(next);
        at = next;
    }
    assert!(!expected.is_empty());
    assert_eq!(found, expected);
}

#[test]
fn what_is_no_schedule_is_refused() {
    for bad in ["", "@never", "* * * *", "* * * * * *", "@every 1h"] {
        assert_eq!(Schedule::parse(bad), Err(CronError::Fields), "{bad}");
    }
    let cases = [
        ("60 * * * *", "minute"),
        ("-1 * * * *", "minute"),
        ("1- * * * *", "minute"),
        ("5-1 * * * *", "minute"),
        ("*/0 * * * *", "minute"),
        ("1,,2 * * * *", "minute"),
        ("*/ * * * *", "minute"),
        ("+1 * * * *", "minute"),
        ("300 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of the month"),
        ("* * 32 * *", "day of the month"),
        ("* * * 13 *", "month"),
        ("* * * janu *", "month"),
        ("* * * * 7", "day of the week"),
        ("* * * * fri-mon", "day of the week"),
    ];
    for (text, name) in cases {
        let error = Schedule::parse(text).unwrap_err();
        assert!(
            matches!(error, CronError::Field { name: n, .. } if n == name),
            "{text}: {error}"
        );
    }
}
