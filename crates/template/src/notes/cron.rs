//! Cron schedules.

use super::{BuiltInNote, NoteBody, NoteCall, NoteType, PLAIN, Value};
use crate::error::EvalFailure;
use orkestra_language::cron::{Schedule, fields};
use orkestra_object::value::{Key, Map, Node};

/// The keys of a schedule given as a map, in the order of the fields.
const KEYS: [&str; 5] = ["minute", "hour", "dayOfMonth", "month", "dayOfWeek"];

/// Parsing a schedule and computing its next time cost as much as several expressions.
const STEPS_A_SCHEDULE: u64 = 16;
const STEPS_A_SEARCH: u64 = 256;

/// A note from a schedule to one of its fields.
const FIELD: BuiltInNote = BuiltInNote {
    params: &[NoteType::Text],
    result: NoteType::Text,
    ..PLAIN
};

pub(crate) static NOTES: &[BuiltInNote] = &[
    BuiltInNote {
        name: "cronMinute",
        doc: "The minute of a schedule, as written; `*` for an empty schedule.",
        example: (r#"{{ cronMinute "5 4 * * *" }}"#, "5"),
        run: NoteBody::Eager(|call| one_field(call, 0)),
        ..FIELD
    },
    BuiltInNote {
        name: "cronHour",
        doc: "The hour of a schedule, as written; `*` for an empty schedule.",
        example: (r#"{{ cronHour "5 4 * * *" }}"#, "4"),
        run: NoteBody::Eager(|call| one_field(call, 1)),
        ..FIELD
    },
    BuiltInNote {
        name: "cronDom",
        doc: "The day of the month of a schedule, as written; `*` for an empty schedule.",
        example: (r#"{{ cronDom "@monthly" }}"#, "1"),
        run: NoteBody::Eager(|call| one_field(call, 2)),
        ..FIELD
    },
    BuiltInNote {
        name: "cronMonth",
        doc: "The month of a schedule, as written; `*` for an empty schedule.",
        example: (r#"{{ cronMonth "0 0 1 3-10 *" }}"#, "3-10"),
        run: NoteBody::Eager(|call| one_field(call, 3)),
        ..FIELD
    },
    BuiltInNote {
        name: "cronDow",
        doc: "The day of the week of a schedule, as written; `*` for an empty schedule.",
        example: (r#"{{ cronDow "@weekly" }}"#, "0"),
        run: NoteBody::Eager(|call| one_field(call, 4)),
        ..FIELD
    },
    BuiltInNote {
        name: "cronField",
        doc: "One field of a schedule, by its position from 0, the minute, to 4, the day of the week.",
        example: (r#"{{ cronField "@weekly" 4 }}"#, "0"),
        min_args: 2,
        max_args: Some(2),
        params: &[NoteType::Text, NoteType::Int],
        run: NoteBody::Eager(cron_field),
        ..FIELD
    },
    BuiltInNote {
        name: "cronExpr",
        doc: "A schedule from its five fields: minute, hour, day of the month, month, day of the week. Empty fields are `*`.",
        example: (r#"{{ cronExpr "0" 3 "" "" "1-5" }}"#, "0 3 * * 1-5"),
        min_args: 5,
        max_args: Some(5),
        params: &[NoteType::Any],
        run: NoteBody::Eager(cron_expr),
        ..FIELD
    },
    BuiltInNote {
        name: "cronValid",
        doc: "True if the text is a schedule: five fields, each in its range, or a name such as `@daily`.",
        example: (
            r#"{{ cronValid "*/15 8-18 * * mon-fri" }} {{ cronValid "60 * * * *" }}"#,
            "true false",
        ),
        result: NoteType::Bool,
        run: NoteBody::Eager(|call| {
            call.budget.step(steps(call.text(0)))?;
            Ok(Schedule::parse(call.text(0)).is_ok().into())
        }),
        ..FIELD
    },
    BuiltInNote {
        name: "cronNormalize",
        doc: "The five fields of a schedule with one space between them and names replaced; `* * * * *` if there are not five.",
        example: (
            r#"{{ cronNormalize " 0  1 * * * " }}|{{ cronNormalize "@hourly" }}"#,
            "0 1 * * *|0 * * * *",
        ),
        run: NoteBody::Eager(normalize),
        ..FIELD
    },
    BuiltInNote {
        name: "cronFromMap",
        doc: "A schedule from a map with `minute`, `hour`, `dayOfMonth`, `month` and `dayOfWeek`; missing fields are `*`.",
        example: (
            r#"{{ cronFromMap (cronToMap "30 3 * * *") }}"#,
            "30 3 * * *",
        ),
        params: &[NoteType::Map],
        run: NoteBody::Eager(from_map),
        ..FIELD
    },
    BuiltInNote {
        name: "cronFromAny",
        doc: "A schedule as text: from text as in `cronNormalize`, from a map as in `cronFromMap`; `* * * * *` for other types.",
        example: (r#"{{ cronFromAny "@daily" }}"#, "0 0 * * *"),
        params: &[NoteType::Any],
        run: NoteBody::Eager(|call| match call.node(0) {
            Node::Map(_) => from_map(call),
            _ => normalize(call),
        }),
        ..FIELD
    },
    BuiltInNote {
        name: "cronToMap",
        doc: "A schedule as a map with `minute`, `hour`, `dayOfMonth`, `month` and `dayOfWeek`; a map is returned unchanged.",
        example: (r#"{{ (cronToMap "30 3 * * *").hour }}"#, "3"),
        params: &[NoteType::Any],
        result: NoteType::Map,
        run: NoteBody::Eager(to_map),
        ..FIELD
    },
    BuiltInNote {
        name: "cronDescribe",
        doc: "A description of a schedule in English, if it is one of the common ones.",
        example: (
            r#"{{ cronDescribe "15 6 * * *" }}, {{ cronDescribe "*/5 * * * *" }}"#,
            "At 6:15 every day, Every 5 minutes",
        ),
        run: NoteBody::Eager(describe),
        ..FIELD
    },
    BuiltInNote {
        name: "nextCron",
        doc: "The next time of a schedule, in UTC; empty if the schedule is malformed or has no next time.",
        example: (r#"{{ nextCron "0 2 * * *" }}"#, "2026-05-09T02:00:00Z"),
        clock: true,
        run: NoteBody::Eager(next),
        ..FIELD
    },
];

fn one_field<'d>(call: &mut NoteCall<'_, 'd>, position: usize) -> Result<Value<'d>, EvalFailure> {
    call.budget.step(STEPS_A_SCHEDULE)?;
    let field = if call.text(0).trim().is_empty() {
        "*"
    } else {
        let Some(fields) = fields(call.text(0)) else {
            let message = format!("`{}` wants a schedule of five fields", call.note.name);
            return Err(EvalFailure::refused(message));
        };
        fields[position]
    };
    let length = field.len();
    call.budget.text(length)?;
    let field = fields(call.text(0)).map_or("*", |fields| fields[position]);
    Ok(Node::from(field).into())
}

fn cron_field<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let position = match call.node(1) {
        Node::Null => Some(0),
        node => node.as_i64().and_then(|n| usize::try_from(n).ok()),
    };
    match position.filter(|position| *position < KEYS.len()) {
        Some(position) => one_field(call, position),
        None => Err(EvalFailure::refused(
            "`cronField` was given a position that is not 0 to 4",
        )),
    }
}

fn cron_expr<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let parts = [0, 1, 2, 3, 4].map(|position| part(Some(call.node(position))));
    joined(call, &parts)
}

/// A field, which may be a number or omitted.
fn part(node: Option<&Node>) -> String {
    let text = match node {
        None | Some(Node::Null | Node::List(_) | Node::Map(_)) => String::new(),
        Some(node) => node.to_text().trim().to_owned(),
    };
    if text.is_empty() {
        "*".to_owned()
    } else {
        text
    }
}

fn joined<'d, S: AsRef<str>>(
    call: &mut NoteCall<'_, 'd>,
    parts: &[S; 5],
) -> Result<Value<'d>, EvalFailure> {
    let length: usize = parts.iter().map(|part| part.as_ref().len() + 1).sum();
    call.budget.text(length)?;
    Ok(Node::from(parts.each_ref().map(AsRef::as_ref).join(" ")).into())
}

fn normalize<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    call.budget.step(STEPS_A_SCHEDULE)?;
    let text = call.take(0);
    joined(call, &five(text.node()))
}

/// The fields of a schedule; all `*` if there are not exactly five.
fn five(node: &Node) -> [&str; 5] {
    node.as_str().and_then(fields).unwrap_or(["*"; 5])
}

fn from_map<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let map = call.take(0);
    let bytes = KEYS
        .iter()
        .filter_map(|key| map.node().get(key)?.as_str())
        .map(str::len)
        .sum();
    call.budget.take(bytes)?;
    joined(call, &KEYS.map(|key| part(map.node().get(key))))
}

fn to_map<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    if let Node::Map(_) = call.node(0) {
        return Ok(call.take(0));
    }
    let length = call.text(0).len();
    call.budget.items(KEYS.len())?;
    call.budget.take(length)?;
    let entries = KEYS.into_iter().zip(five(call.node(0)));
    let map: Map = entries
        .map(|(key, field)| (Key::new(key), Node::from(field)))
        .collect();
    Ok(Node::from(map).into())
}

fn describe<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    let length = call.text(0).len();
    call.budget.text(length + 64)?;
    let [minute, hour, day, month, weekday] = five(call.node(0));
    let text = match (minute.strip_prefix("*/"), [hour, day, month, weekday]) {
        (Some(n), ["*", "*", "*", "*"]) => format!("Every {n} minutes"),
        (_, ["*", "*", "*", "*"]) if minute == "0" => "Every hour".to_owned(),
        (_, [hour, "*", "*", "*"]) if minute != "*" && hour != "*" => {
            format!("At {hour}:{minute} every day")
        }
        (_, [hour, "*", "*", weekday]) if weekday != "*" => {
            format!("At {hour}:{minute} on day-of-week {weekday}")
        }
        (_, [hour, day, "*", "*"]) if day != "*" => {
            format!("At {hour}:{minute} on day {day} of every month")
        }
        _ => format!("Cron: {minute} {hour} {day} {month} {weekday}"),
    };
    Ok(Node::from(text).into())
}

/// The cost of parsing a schedule, in steps. Every other byte may hold a value.
fn steps(text: &str) -> u64 {
    STEPS_A_SCHEDULE + text.len() as u64 / 2
}

fn next<'d>(call: &mut NoteCall<'_, 'd>) -> Result<Value<'d>, EvalFailure> {
    call.budget.step(STEPS_A_SEARCH + steps(call.text(0)))?;
    call.budget.text(32)?;
    let next = Schedule::parse(call.text(0))
        .ok()
        .and_then(|schedule| schedule.next(call.data.now()));
    let text = next.map(|next| next.to_string()).unwrap_or_default();
    Ok(Node::from(text).into())
}

#[cfg(test)]
mod tests {
    use crate::tests::{node, text};
    use orkestra_object::value::Node;

    #[test]
    fn descriptions_are_by_the_common_forms() {
        let cases = [
            ("*/5 * * * *", "Every 5 minutes"),
            ("0 * * * *", "Every hour"),
            ("15 6 * * *", "At 6:15 every day"),
            ("0 2 * * 1-5", "At 2:0 on day-of-week 1-5"),
            ("30 4 1 * *", "At 4:30 on day 1 of every month"),
            ("30 4 1 * 2", "Cron: 30 4 1 * 2"),
            ("30 4 * 2 *", "Cron: 30 4 * 2 *"),
            ("* * * * *", "Cron: * * * * *"),
            ("*/5 * * * 1", "At *:*/5 on day-of-week 1"),
            ("5 * * * *", "Cron: 5 * * * *"),
            ("*/5 3 * * *", "At 3:*/5 every day"),
            ("@weekly", "At 0:0 on day-of-week 0"),
            ("nonsense", "Cron: * * * * *"),
        ];
        for (schedule, expected) in cases {
            let source = format!("{{{{ cronDescribe {schedule:?} }}}}");
            assert_eq!(text(&source, &Node::Null).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn maps_may_hold_numbers_and_lack_keys() {
        let root = node!({"map": {"hour": 3, "minute": " ", "month": null, "dayOfWeek": ["x"]}});
        let cases = [
            ("{{ cronFromMap .map }}", "* 3 * * *"),
            ("{{ cronFromAny .map }}", "* 3 * * *"),
            ("{{ cronFromAny 7 }}", "* * * * *"),
            ("{{ (cronToMap .map).hour }}", "3"),
            (
                "{{ cronToMap \"\" }}",
                "map[dayOfMonth:* dayOfWeek:* hour:* minute:* month:*]",
            ),
            ("{{ cronHour \"\" }}", "*"),
            ("{{ nextCron \"0 0 30 2 *\" }}{{ nextCron \"x\" }}", ""),
        ];
        for (source, expected) in cases {
            assert_eq!(text(source, &root).as_deref(), Ok(expected), "{source}");
        }
        for source in [
            "{{ cronHour \"1 2 3\" }}",
            "{{ cronField \"@daily\" 5 }}",
            "{{ cronField \"@daily\" -1 }}",
            "{{ cronFromMap .map.hour }}",
        ] {
            assert!(text(source, &root).is_err(), "{source}");
        }
    }
}
