//! `observe.events`: the Events that trigger a pass.

use super::{
    changes, check_name,
    key::{self, KeyInput},
    text,
};
use crate::scope::At;
use orkestra_language::{
    api::observe::{EventFilter, EventType, ObjectFilter},
    diagnostics::Code,
};
use orkestra_object::value::{Key, Path};
use orkestra_plan::{NameRule, observe::EventPlan};

/// Compiles the entry `name` of the map at `at`.
pub(crate) fn plan(at: &At<'_>, name: &str, declared: &EventFilter) -> Option<EventPlan> {
    check_key(at, name);
    let at = at.field(name);
    let before = at.count();
    let EventFilter {
        reason,
        action,
        type_,
        reporting_controller,
        reporting_instance,
        namespace,
        on,
        regarding,
        related,
        key_from,
    } = declared;
    let type_ = type_.map(|type_| match type_ {
        EventType::Normal => "Normal",
        EventType::Warning => "Warning",
    });
    let mut filter = Vec::new();
    let own = [
        ("action", action.as_deref()),
        ("reason", reason.as_deref()),
        ("reportingController", reporting_controller.as_deref()),
        ("reportingInstance", reporting_instance.as_deref()),
        ("type", type_),
    ];
    for (field, written) in own {
        filter.extend(part(&at.field(field), &[field], written));
    }
    let place = at.field("namespace");
    if let Some(namespace) = text(&place, namespace.as_deref()) {
        check_name(&place, &namespace, NameRule::Label1123);
        filter.push((Path::of_fields(["metadata", "namespace"]), namespace));
    }
    for (field, object) in [("regarding", regarding), ("related", related)] {
        if let Some(object) = object {
            filter.extend(of_object(&at.field(field), field, object));
        }
    }
    if filter.is_empty() && at.count() == before {
        let hint = "select Events, for example with `reason: FailedScheduling`";
        at.error_hint(
            Code::Missing,
            "every Event of the cluster would match",
            hint,
        );
    }
    let on = changes(&at.field("on"), on.as_deref());
    let key = key::plan(&at.field("keyFrom"), key_from.as_ref(), KeyInput::Event)?;
    Some(EventPlan {
        path: at.kept(),
        name: Key::from(name),
        filter: filter.into(),
        on,
        key,
        reads: Vec::new(),
    })
}

/// Checks the key of an entry.
fn check_key(at: &At<'_>, name: &str) {
    let is_word = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_word {
        let message = format!("`{name}` is not a valid event name");
        let hint = "names are written in camel case, such as `imagePullFailed`: it is the key under `.events`";
        at.key(name).error_hint(Code::BadName, message, hint);
    }
}

fn part(at: &At<'_>, path: &[&str], written: Option<&str>) -> Option<(Path, Box<str>)> {
    Some((Path::of_fields(path.iter().copied()), text(at, written)?))
}

fn of_object(at: &At<'_>, root: &str, object: &ObjectFilter) -> Vec<(Path, Box<str>)> {
    let ObjectFilter {
        api_version,
        kind,
        name,
        namespace,
    } = object;
    let parts = [
        ("apiVersion", api_version),
        ("kind", kind),
        ("name", name),
        ("namespace", namespace),
    ];
    let parts = parts
        .into_iter()
        .filter_map(|(field, written)| part(&at.field(field), &[root, field], written.as_deref()));
    parts.collect()
}
