//! Normalizes, compares and prints objects.

use std::fmt::Write as _;

use orkestra_language::api::names;
use orkestra_object::value::Node;
use serde_json::{Map, Value};
use similar::TextDiff;

use super::Change;

/// Lines of context around a difference.
const CONTEXT: usize = 3;
/// Replacements for a hidden value, and for its two sides if they differ, as in `kubectl diff`.
const HIDDEN: [&str; 3] = ["***", "*** (before)", "*** (after)"];
/// Fields of `metadata` that the API server sets.
const SET: [&str; 6] = [
    "managedFields",
    "resourceVersion",
    "generation",
    "uid",
    "creationTimestamp",
    "selfLink",
];
/// The annotation in which `kubectl apply` keeps the applied object, including values.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Prints the changes as unified diffs, each of the complete object as YAML.
///
/// # Errors
/// An object cannot be written as YAML.
pub fn unified(changes: &[Change]) -> Result<String, serde_saphyr::ser::Error> {
    let mut text = String::new();
    for change in changes {
        let Change {
            object,
            before,
            after,
            conflict,
        } = change;
        if let Some(conflict) = conflict {
            let line = conflict.replace(char::is_control, " ");
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "# {object}: other field managers applied fields of it: {line}"
            );
        }
        let yaml = |side: &Option<Value>| match side {
            Some(object) => serde_saphyr::to_string(object),
            None => Ok(String::new()),
        };
        let (old, new) = (yaml(before)?, yaml(after)?);
        for (sign, side) in [("---", before), ("+++", after)] {
            let name = side.as_ref().map_or("/dev/null", |_| object.as_str());
            let _ = writeln!(text, "{sign} {}", name.replace(char::is_control, " "));
        }
        let diff = TextDiff::from_lines(old.as_str(), new.as_str());
        text.push_str(&diff.unified_diff().context_radius(CONTEXT).to_string());
    }
    Ok(text)
}

/// `Deployment.apps shop/web`.
pub(crate) fn name(object: &Value) -> String {
    let text = |field| object.pointer(field).and_then(Value::as_str);
    let group = text("/apiVersion").and_then(|version| version.split_once('/'));
    let group = group.map_or(String::new(), |(group, _)| format!(".{group}"));
    let kind = text("/kind").unwrap_or_default();
    let name = text("/metadata/name").unwrap_or_default();
    let namespace = text("/metadata/namespace").map_or(String::new(), |one| format!("{one}/"));
    format!("{kind}{group} {namespace}{name}")
}

/// The resourceVersion of an object.
pub(crate) fn version(object: &Value) -> Option<&str> {
    object.pointer("/metadata/resourceVersion")?.as_str()
}

/// Returns the object without fields that the API server sets, its status, and the hash of the applied object.
pub(crate) fn cleaned(object: &Value) -> Value {
    let mut object = object.clone();
    let Value::Object(fields) = &mut object else {
        return object;
    };
    fields.remove("status");
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        for field in SET {
            metadata.remove(field);
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(names::ANNOTATION_APPLIED);
            annotations.remove(LAST_APPLIED);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    object
}

/// Keeps the Katalog label of a live object if only the Katalog's namespace differs: a file does not contain the namespace that
/// it is applied to.
pub(crate) fn keep_katalog(live: &Value, after: &mut Value) {
    // A namespace has no dots.
    let name = |label: &Value| Some(label.as_str()?.split_once('.')?.1.to_owned());
    let live = live
        .get("metadata")
        .and_then(|all| all.get("labels")?.get(names::LABEL_KATALOG));
    let after = after
        .get_mut("metadata")
        .and_then(|all| all.get_mut("labels")?.get_mut(names::LABEL_KATALOG));
    if let (Some(live), Some(after)) = (live, after)
        && name(live).is_some()
        && name(live) == name(after)
    {
        after.clone_from(live);
    }
}

/// Hides the values of a Secret.
pub(crate) fn mask_secret(before: Option<&mut Value>, after: Option<&mut Value>) {
    let (mut none, mut nothing) = (Value::Null, Value::Null);
    let (before, after) = (before.unwrap_or(&mut none), after.unwrap_or(&mut nothing));
    for field in ["data", "stringData"] {
        let (mut no_map, mut empty) = (Map::new(), Map::new());
        let before = before.get_mut(field).and_then(Value::as_object_mut);
        let after = after.get_mut(field).and_then(Value::as_object_mut);
        let (before, after) = (before.unwrap_or(&mut no_map), after.unwrap_or(&mut empty));
        let keys: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
        for key in keys {
            hide(before.get_mut(&key), after.get_mut(&key));
        }
    }
}

/// Hides every value that is `mask_text` in `hidden`, on both sides.
pub(crate) fn mask(
    hidden: &Node,
    mask_text: &str,
    before: Option<&mut Value>,
    after: Option<&mut Value>,
) {
    match hidden {
        Node::Map(fields) => {
            // If a key itself is hidden, the affected values are unknown.
            if fields.get(mask_text).is_some() {
                return hide(before, after);
            }
            let (mut before, mut after) = (before, after);
            for (key, below) in fields.iter() {
                let before = before
                    .as_mut()
                    .and_then(|value| value.get_mut(key.as_str()));
                let after = after.as_mut().and_then(|value| value.get_mut(key.as_str()));
                mask(below, mask_text, before, after);
            }
        }
        Node::List(items) => {
            let (mut before, mut after) = (before, after);
            for (place, below) in items.iter().enumerate() {
                let before = before.as_mut().and_then(|value| value.get_mut(place));
                let after = after.as_mut().and_then(|value| value.get_mut(place));
                mask(below, mask_text, before, after);
            }
        }
        node if node.as_str() == Some(mask_text) => hide(before, after),
        _ => {}
    }
}

fn hide(before: Option<&mut Value>, after: Option<&mut Value>) {
    let [same, old, new] = HIDDEN;
    match (before, after) {
        (Some(before), Some(after)) if before != after => {
            *before = old.into();
            *after = new.into();
        }
        (before, after) => {
            for value in before.into_iter().chain(after) {
                *value = same.into();
            }
        }
    }
}
