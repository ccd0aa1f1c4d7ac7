//! Whether a definition may replace the one that the cluster has.
//!
//! ```text
//!  live, wanted ── compare ──┬─ Impossible                 another scope, or a version in which objects are stored is missing
//!                            ├─ Widened                    every object stays as it is
//!                            └─ Narrowed ── harm ──► of each stored object: what it would lose or violate
//! ```
//!
//! Source: Kubernetes, "Versions in `CustomResourceDefinitions`", and the pruning of unknown fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{CrdShape, CrdVersion};
use orkestra_object::value::Node;

/// What a new definition changes for objects of the one that the cluster has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionChange {
    /// The API server refuses it, or objects could not be read any more.
    Impossible(String),
    /// Every object of the live definition is valid under the new one, and loses no field.
    Widened,
    /// An object may be invalid under the new one, or lose a field: a line for each change.
    Narrowed(Vec<String>),
}

/// Compares a definition with the live one. `stored` are the versions in which objects may be stored, `status.storedVersions`.
pub fn compare(live: &CrdShape, wanted: &CrdShape, stored: &[String]) -> DefinitionChange {
    if live.namespaced != wanted.namespaced {
        let scope = |namespaced| if namespaced { "Namespaced" } else { "Cluster" };
        return DefinitionChange::Impossible(format!(
            "the scope cannot change from {} to {}",
            scope(live.namespaced),
            scope(wanted.namespaced)
        ));
    }
    let lost = stored.iter().find(|name| wanted.version(name).is_none());
    if let Some(lost) = lost {
        return DefinitionChange::Impossible(format!(
            "objects may be stored in version {lost}, which no entry declares: declare it until `ork migrate storage {}.{}` has \
             stored all objects again",
            wanted.plural, wanted.group
        ));
    }
    let mut lines = Vec::new();
    for before in live.versions.iter().filter(|version| version.served) {
        match wanted.version(&before.name) {
            Some(after) => lines.extend(narrowed(before, after)),
            None => lines.push(format!("version {} is not served any more", before.name)),
        }
    }
    if let (Some(before), Some(after)) = (storage(live), storage(wanted))
        && before.name != after.name
        && live.version(&after.name).is_none()
    {
        lines.extend(narrowed(before, after));
    }
    if lines.is_empty() {
        DefinitionChange::Widened
    } else {
        DefinitionChange::Narrowed(lines)
    }
}

/// Returns what a stored object would lose or violate under the new definition, a line for each problem that it does not have
/// already. `converts` is true if a conversion changes objects between versions: then only its own version is checked.
pub fn harm(live: &CrdShape, wanted: &CrdShape, object: &Node, converts: bool) -> Vec<String> {
    let version = object.get("apiVersion").and_then(Node::as_str);
    let own = version.and_then(|version| version.rsplit_once('/'));
    let own = own.map_or("", |(_, name)| name);
    let mut versions = BTreeSet::from([own]);
    if !converts {
        versions.extend(storage(wanted).map(|version| &*version.name));
    }
    let before = problems(live, object);
    let mut found = Vec::new();
    for version in versions {
        if wanted
            .version(version)
            .is_none_or(|version| !version.served)
        {
            continue;
        }
        let mut object = object.to_json();
        object["apiVersion"] = format!("{}/{version}", wanted.group).into();
        let after = problems(wanted, &Node::from(&object));
        found.extend(after.difference(&before).cloned());
    }
    found.sort();
    found.dedup();
    found
}

fn problems(shape: &CrdShape, object: &Node) -> BTreeSet<String> {
    let found = shape.check_object(object).0.into_iter();
    let errors =
        found.filter(|one| one.severity == orkestra_language::diagnostics::Severity::Error);
    errors
        .map(|one| format!("{}: {}", one.path, one.message))
        .collect()
}

fn storage(shape: &CrdShape) -> Option<&CrdVersion> {
    shape.versions.iter().find(|version| version.storage)
}

/// Returns a line for each change by which an object may become invalid or lose a field.
fn narrowed(before: &CrdVersion, after: &CrdVersion) -> Vec<String> {
    let mut lines = Vec::new();
    let (old, new) = (before.schema.to_json(), after.schema.to_json());
    schema(&old, &new, "", &mut lines);
    lines
}

/// Compares two schemas of a field.
fn schema(old: &Value, new: &Value, at: &str, lines: &mut Vec<String>) {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        if old != new {
            lines.push(format!("{} has another schema", named(at)));
        }
        return;
    };
    properties(old, new, at, lines);
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys {
        let (before, after) = (old.get(key), new.get(key));
        if before == after || is_said(key) {
            continue;
        }
        match (before, after, nested(key, at)) {
            (Some(before), Some(after), Some(at)) if before.is_object() && after.is_object() => {
                schema(before, after, &at, lines);
            }
            _ if is_wider(key, before, after, old, new) => {}
            _ => lines.push(line(key, before, after, at)),
        }
    }
}

/// Compares the fields of an object.
fn properties(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    at: &str,
    lines: &mut Vec<String>,
) {
    let none = Map::new();
    let of = |schema: &Map<String, Value>| {
        let fields = schema.get("properties").and_then(Value::as_object);
        fields.cloned().unwrap_or_else(|| none.clone())
    };
    let (before, after) = (of(old), of(new));
    for (name, old_field) in &before {
        let at = format!("{at}.{name}");
        match after.get(name) {
            Some(new_field) => schema(old_field, new_field, &at, lines),
            None if keeps_unknown(new) => {}
            None => lines.push(format!("{} is removed", named(&at))),
        }
    }
    if keeps_unknown(old) {
        let added = after.keys().filter(|name| !before.contains_key(*name));
        lines.extend(added.map(|name| {
            let at = format!("{at}.{name}");
            format!("{} has a type, and could be anything before", named(&at))
        }));
    }
}

/// True if an object of the schema keeps fields that it does not name.
fn keeps_unknown(schema: &Map<String, Value>) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
        || schema
            .get("additionalProperties")
            .is_some_and(|any| *any != Value::Bool(false))
}

/// True for keywords that invalidate no value, and for those that [`properties`] compares.
fn is_said(key: &str) -> bool {
    matches!(
        key,
        "properties" | "description" | "title" | "example" | "externalDocs" | "default"
    )
}

/// Returns the place of the schema below a keyword.
fn nested(key: &str, at: &str) -> Option<String> {
    match key {
        "items" => Some(format!("{at}[]")),
        "additionalProperties" => Some(format!("{at}.*")),
        _ => None,
    }
}

/// True if no value becomes invalid because of the change of a keyword.
fn is_wider(
    key: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> bool {
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let is_true = |value: Option<&Value>| value == Some(&Value::Bool(true));
    match key {
        "minimum" | "minLength" | "minItems" | "minProperties" => {
            after.is_none() || number(after) <= number(before) && before.is_some()
        }
        "maximum" | "maxLength" | "maxItems" | "maxProperties" => {
            after.is_none() || number(after) >= number(before) && before.is_some()
        }
        "exclusiveMinimum" | "exclusiveMaximum" | "uniqueItems" => !is_true(after),
        "nullable"
        | "x-kubernetes-embedded-resource"
        | "x-kubernetes-preserve-unknown-fields"
        | "x-kubernetes-int-or-string" => is_true(after),
        "type" => {
            after.is_none()
                || before.is_some_and(|old| old == "integer")
                    && after.is_some_and(|new| new == "number")
        }
        "required" => {
            let before = list(before);
            list(after).iter().all(|name| before.contains(name))
        }
        "enum" => {
            let after_values = list(after);
            after.is_none()
                || before.is_some()
                    && list(before)
                        .iter()
                        .all(|value| after_values.contains(value))
        }
        "x-kubernetes-validations" => {
            let before = list(before);
            let is_known = |rule: &Value| before.iter().any(|one| one["rule"] == rule["rule"]);
            list(after).iter().all(is_known)
        }
        "additionalProperties" => match (before, after) {
            (None | Some(Value::Bool(false)), Some(_)) => !keeps_unknown(old),
            _ => keeps_unknown(new) && !after.is_some_and(Value::is_object),
        },
        // Such as a pattern or a format: without it, more is permitted.
        _ => after.is_none(),
    }
}

/// Describes the change of a keyword.
fn line(key: &str, before: Option<&Value>, after: Option<&Value>, at: &str) -> String {
    let at = named(at);
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    match (key, before, after) {
        ("required", ..) => {
            let known = list(before);
            let added = list(after).into_iter().filter(|name| !known.contains(name));
            let names: Vec<String> = added
                .filter_map(|name| name.as_str().map(|name| format!("`{name}`")))
                .collect();
            format!("{at} requires {}", names.join(", "))
        }
        ("x-kubernetes-validations", ..) => format!("{at} has a new rule"),
        (_, Some(before), Some(after)) => format!("{at}: `{key}` is {after}, and was {before}"),
        (_, None, Some(after)) => format!("{at}: `{key}` is {after}"),
        (_, _, None) => format!("{at}: `{key}` is removed"),
    }
}

/// Returns the path of a field for a message.
fn named(at: &str) -> &str {
    match at.trim_start_matches('.') {
        "" => "the object",
        path => path,
    }
}

#[cfg(test)]
mod tests;
