//! `time`, `dayOfWeek` and `cron`.

use crate::scope::At;
use orkestra_language::{
    api::{
        DayOfWeek, GateCondition, TimeWindow,
        scalar::{Text, Texts},
    },
    cron::Schedule,
    diagnostics::{Code, did_you_mean},
    window::{Daily, Days, time_of_day},
};
use orkestra_plan::{Coerce, Leaf, Window};

/// Compiles the windows of the condition at `at`: `None` if it does not ask for the time, `Some(None)` after an error,
/// which is reported.
#[expect(clippy::option_option, reason = "not asked, or asked wrongly")]
pub(crate) fn of_condition(at: &At<'_>, declared: &GateCondition) -> Option<Option<Box<[Window]>>> {
    let time = declared
        .time
        .as_ref()
        .map(|time| daily(&at.field("time"), time));
    let days = declared
        .day_of_week
        .as_ref()
        .map(|days| of_week(&at.field("dayOfWeek"), days));
    let windows = [time, days, cron(at, declared)];
    if windows.iter().all(Option::is_none) {
        return None;
    }
    Some(windows.into_iter().flatten().collect())
}

fn daily(at: &At<'_>, declared: &TimeWindow) -> Option<Window> {
    let TimeWindow { after, before } = declared;
    if after.is_none() && before.is_none() {
        at.error_hint(
            Code::TimeCondition,
            "the time has neither a beginning nor an end",
            "add `after: \"09:00\"`, `before: \"17:00\"` or both",
        );
        return None;
    }
    let edge = |name: &str, text: &Option<Text>| match text {
        Some(text) => of_day(&at.field(name), text).map(Some),
        None => Some(None),
    };
    let (after, before) = (edge("after", after), edge("before", before));
    let (after, before) = (after?, before?);
    let literal = |leaf: &Option<Leaf>| {
        let text = leaf.as_ref().map(|leaf| leaf.template.literal());
        text.map(|text| text.and_then(time_of_day))
    };
    let fixed = match (literal(&after), literal(&before)) {
        (Some(None), _) | (_, Some(None)) => return Some(Window::Rendered(after, before)),
        (from, to) => Daily {
            after: from.flatten(),
            before: to.flatten(),
        },
    };
    if fixed.after.is_some() && fixed.after == fixed.before {
        let message =
            "the window is empty, because it ends when it starts: the condition never holds";
        at.error(Code::TimeCondition, message);
        return None;
    }
    Some(Window::Daily(fixed))
}

/// Compiles a time of day, or a template for one.
fn of_day(at: &At<'_>, text: &Text) -> Option<Leaf> {
    let leaf = at.leaf(text, Coerce::OptionalText)?;
    let literal = leaf.template.literal();
    if literal.is_some_and(|literal| time_of_day(literal).is_none()) {
        let message = format!("`{text}` is not a time of day: write `HH:MM`, from 00:00 to 23:59");
        at.error(Code::TimeCondition, message);
        return None;
    }
    Some(leaf)
}

fn of_week(at: &At<'_>, declared: &DayOfWeek) -> Option<Window> {
    let DayOfWeek {
        weekday,
        weekend,
        in_,
        not_in,
    } = declared;
    let either = |flag: bool, days: Days| Some(if flag { days } else { days.others() });
    let mut given = Vec::new();
    given.extend(weekday.map(|flag| either(flag, Days::WEEKDAYS)));
    given.extend(weekend.map(|flag| either(flag, Days::WEEKEND)));
    given.extend(in_.as_ref().map(|texts| named(&at.field("in"), texts)));
    given.extend(
        not_in
            .as_ref()
            .map(|texts| named(&at.field("notIn"), texts).map(Days::others)),
    );
    let [days] = given[..] else {
        at.error(
            Code::TimeCondition,
            "`dayOfWeek` takes exactly one of `weekday`, `weekend`, `in` and `notIn`",
        );
        return None;
    };
    let days = days?;
    if days == Days::default() || days.others() == Days::default() {
        let what = if days == Days::default() {
            "no day"
        } else {
            "every day"
        };
        at.error(Code::TimeCondition, format!("`dayOfWeek` names {what}"));
        return None;
    }
    Some(Window::Days(days))
}

/// Returns the days with those names.
fn named(at: &At<'_>, texts: &Texts) -> Option<Days> {
    let one = |at: &At<'_>, name: &str| {
        let found = Days::named(name);
        if found.is_none() {
            let message = format!("`{}` is not a day of the week", name.trim());
            match did_you_mean(&name.trim().to_lowercase(), Days::names()) {
                Some(hint) => at.error_hint(Code::TimeCondition, message, hint),
                None => at.error(Code::TimeCondition, message),
            }
        }
        found
    };
    let days: Vec<Option<Days>> = match texts {
        Texts::List(names) => names
            .iter()
            .enumerate()
            .map(|(index, name)| one(&at.index(index), name))
            .collect(),
        Texts::Template(text) => text.split(',').map(|name| one(at, name)).collect(),
    };
    days.into_iter()
        .try_fold(Days::default(), |all, day| Some(all.and(day?)))
}

#[expect(
    clippy::option_option,
    reason = "nothing is declared, it is wrong, or it is a window"
)]
fn cron(at: &At<'_>, declared: &GateCondition) -> Option<Option<Window>> {
    let (text, length) = match (&declared.cron, declared.duration) {
        (None, None) => return None,
        (Some(text), Some(length)) => (text, length.0),
        (Some(_), None) => {
            at.field("cron").error_hint(
                Code::TimeCondition,
                "`duration` is missing: it sets how long the condition holds",
                "add `duration`, such as `duration: 1h`, beside `cron`",
            );
            return Some(None);
        }
        (None, Some(_)) => {
            let message = "a `duration` without `cron`";
            at.field("duration").error(Code::TimeCondition, message);
            return Some(None);
        }
    };
    if length.is_zero() {
        let message = "the duration is zero, so the condition never holds";
        at.field("duration").error(Code::TimeCondition, message);
        return Some(None);
    }
    let at = at.field("cron");
    let Some(leaf) = at.leaf(text, Coerce::OptionalText) else {
        return Some(None);
    };
    if let Some(literal) = leaf.template.literal()
        && let Err(error) = Schedule::parse(literal)
    {
        at.error(Code::TimeCondition, error.to_string());
        return Some(None);
    }
    Some(Some(Window::Cron(leaf, length)))
}
