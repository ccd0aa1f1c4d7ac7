use super::*;
use crate::{Data, EvalBudget, Template};

/// Evaluates a template at 2026-01-09T12:00:00Z, a Friday, and returns its text.
fn text(source: &str) -> String {
    text_at("2026-01-09T12:00:00Z", source)
}

fn text_at(now: &str, source: &str) -> String {
    let data = Data::new().at(now.parse().unwrap());
    let template = Template::parse(source).unwrap();
    template
        .render_text(&data, &mut EvalBudget::default())
        .unwrap()
}

#[test]
fn ages_are_written_in_their_largest_unit() {
    let cases = [
        ("2026-01-09T12:00:00Z", "0s ago", 0),
        ("2026-01-09T11:59:01Z", "59s ago", 59),
        ("2026-01-09T11:58:30Z", "1m ago", 90),
        ("2026-01-09T13:58:30+02:00", "1m ago", 90),
        ("2026-01-09T09:00:01.5Z", "2h ago", 10_798),
        ("2026-01-08T12:00:00Z", "1d ago", 86_400),
        ("2026-01-09", "12h ago", 43_200),
        ("2026-01-09T12:01:00Z", "0s ago", -60),
    ];
    for (time, ago, seconds) in cases {
        assert_eq!(text(&format!("{{{{ timeAgo {time:?} }}}}")), ago);
        assert_eq!(
            text(&format!("{{{{ timeSince {time:?} }}}}")),
            seconds.to_string()
        );
    }
}

#[test]
fn what_is_no_timestamp_is_empty_or_0() {
    for bad in [
        "",
        "x",
        "2026-01-09T12:00:00",
        "2026-01-09 12:00:00Z",
        "2026-01-09t12:00:00Z",
        "2026-13-09",
        "2026-02-30",
        "20260109",
        "2026-01-09T12:00Z",
        "2026-01-09T25:00:00Z",
        "2026-01-09T12:00:00.Z",
        "2026-01-09T12:00:00+0200",
        "2026-01-09T12:00:00Z[Europe/Paris]",
        "2026-01-09T12:00:00+99:00",
        "é026-01-09T12:00:00Z",
        "2026-01-09T12:00:0é",
    ] {
        let source = format!(
            "{{{{ timeAgo {bad:?} }}}}|{{{{ timeSince {bad:?} }}}}|{{{{ timeUntil {bad:?} }}}}|{{{{ timeFormat {bad:?} \"2006\" }}}}|{{{{ isExpired {bad:?} \"1s\" }}}}"
        );
        assert_eq!(text(&source), "|0|||false", "{bad}");
    }
}

#[test]
fn waits_are_durations_of_go() {
    let cases = [
        ("2026-01-09T13:30:00Z", "1h30m0s"),
        ("2026-01-09T12:00:59.9Z", "59s"),
        ("2026-01-11T12:00:00Z", "48h0m0s"),
        ("2026-01-09T11:00:00Z", "0s"),
    ];
    for (time, until) in cases {
        assert_eq!(text(&format!("{{{{ timeUntil {time:?} }}}}")), until);
    }
}

#[test]
fn durations_print_as_in_go() {
    let cases = [
        (0, "0s"),
        (1, "1ns"),
        (1_100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (3_000_000_000, "3s"),
        (60_000_000_000, "1m0s"),
        (245_001_000_000, "4m5.001s"),
        (3_600_000_000_000, "1h0m0s"),
        (18_367_000_000_000, "5h6m7s"),
        (-5_400_000_000_000, "-1h30m0s"),
        (-1, "-1ns"),
    ];
    for (nanos, text) in cases {
        assert_eq!(go_text(nanos), text);
    }
}

#[test]
fn durations_may_be_negative_and_long() {
    let cases = [
        (r#"{{ durationAdd "1h" "-15m" }}"#, "45m0s"),
        (r#"{{ durationAdd "1h" "-1d" }}"#, "-23h0m0s"),
        (r#"{{ durationAdd "1h" "x" }}"#, "0s"),
        (
            r#"{{ durationSeconds "1mo" }} {{ durationSeconds "1y" }}"#,
            "2592000 31536000",
        ),
        (
            r#"{{ durationSeconds "-1.9s" }} {{ durationSeconds "" }}"#,
            "-1 0",
        ),
        (
            r#"{{ durationValid "-5s" }} {{ durationValid "- 5s" }} {{ durationValid "--5s" }}"#,
            "true false false",
        ),
        (
            r#"{{ durationValid "" }} {{ durationValid "5" }}"#,
            "false false",
        ),
    ];
    for (source, expected) in cases {
        assert_eq!(text(source), expected, "{source}");
    }
}

#[test]
fn what_is_older_than_its_lifetime_is_expired() {
    let cases = [
        ("2026-01-01", "7d", "true"),
        ("2026-01-09T11:00:00Z", "1h", "false"),
        ("2026-01-09T11:00:00Z", "59m", "true"),
        ("2026-01-09T11:00:00Z", "x", "false"),
        ("2026-01-10T11:00:00Z", "1h", "false"),
    ];
    for (time, lifetime, expected) in cases {
        let source = format!("{{{{ isExpired {time:?} {lifetime:?} }}}}");
        assert_eq!(text(&source), expected, "{source}");
    }
}

#[test]
fn a_window_has_its_start_and_not_its_end_and_may_cross_midnight() {
    let cases = [
        ("09:00", "12:00", "false"),
        ("12:00", "13:00", "true"),
        ("9:00", "12:01", "true"),
        ("22:00", "06:00", "false"),
        ("12:00", "06:00", "true"),
        ("13:00", "12:01", "true"),
        ("12:00", "12:00", "false"),
        ("00:00", "24:00", "false"),
        ("09:0", "13:00", "false"),
        ("", "13:00", "false"),
        ("noon", "13:00", "false"),
        ("+9:00", "13:00", "false"),
    ];
    for (from, to, expected) in cases {
        let source = format!(
            "{{{{ timeInWindow {from:?} {to:?} }}}} {{{{ timeNotInWindow {from:?} {to:?} }}}}"
        );
        let opposite = if expected == "true" { "false" } else { "true" };
        assert_eq!(text(&source), format!("{expected} {opposite}"), "{source}");
    }
}

#[test]
fn saturday_and_sunday_are_the_weekend() {
    for (day, weekend) in [(9, false), (10, true), (11, true), (12, false)] {
        let now = format!("2026-01-{day:02}T23:59:59Z");
        let expected = format!("{} {weekend}", !weekend);
        assert_eq!(text_at(&now, "{{ weekday }} {{ weekend }}"), expected);
    }
}

/// The expected values are the results of Go's `Time.Format`.
#[test]
fn layouts_are_those_of_go() {
    let time = "2009-02-04T21:00:57.012345600-08:00";
    let cases = [
        ("Mon Jan _2 15:04:05 2006", "Wed Feb  4 21:00:57 2009"),
        (
            "Mon Jan _2 15:04:05 MST 2006",
            "Wed Feb  4 21:00:57 -0800 2009",
        ),
        (
            "Mon Jan 02 15:04:05 -0700 2006",
            "Wed Feb 04 21:00:57 -0800 2009",
        ),
        ("02 Jan 06 15:04 -0700", "04 Feb 09 21:00 -0800"),
        (
            "Monday, 02-Jan-06 15:04:05 Z07:00",
            "Wednesday, 04-Feb-09 21:00:57 -08:00",
        ),
        ("2006-01-02T15:04:05Z07:00", "2009-02-04T21:00:57-08:00"),
        (
            "2006-01-02T15:04:05.999999999Z07:00",
            "2009-02-04T21:00:57.0123456-08:00",
        ),
        ("3:04PM", "9:00PM"),
        ("03:04:05.000 pm", "09:00:57.012 pm"),
        ("05.000000000", "57.012345600"),
        ("05,999", "57,012"),
        ("05.9", "57"),
        ("05.0001", "57.0002"),
        (
            "Z070000 Z07 -07 -07:00:00 -070000 Z0700",
            "-080000 -08 -08 -08:00:00 -080000 -0800",
        ),
        ("002 __2", "035  35"),
        ("_2006 _2", "_2009  4"),
        ("January 1, 2 3 4 5", "February 2, 4 9 0 57"),
        ("Janus Month Mondays", "Janus Month Wednesdays"),
        ("_2006_2", "_2009 4"),
        ("20060102150405", "20090204210057"),
        ("1234567890", "24905767890"),
        ("Jan2 Januaryx", "Feb4 Februaryx"),
        ("-07:0 Z0 .99x .0a", "-08:0 Z0 .01x .0a"),
        ("é日", "é日"),
        ("", ""),
    ];
    for (layout, expected) in cases {
        let source = format!("{{{{ timeFormat {time:?} {layout:?} }}}}");
        assert_eq!(text(&source), expected, "{layout}");
    }
    let utc = [
        ("MST Z07:00 -0700 Z0700 3pm", "UTC Z +0000 Z 12am"),
        ("15h 03 PM .000 .999", "00h 12 AM .000 "),
    ];
    for (layout, expected) in utc {
        let source = format!("{{{{ timeFormat \"2026-01-09\" {layout:?} }}}}");
        assert_eq!(text(&source), expected, "{layout}");
    }
}
