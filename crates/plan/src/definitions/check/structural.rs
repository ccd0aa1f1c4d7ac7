//! Structural schemas.
//!
//! Source: Kubernetes, "Specifying a structural schema".

use super::{
    Check, flag,
    keywords::{self, keys},
    restriction,
};
use crate::definitions::object::{RuleProblem, check_default, check_rule, entries, words_of};
use orkestra_language::{
    diagnostics::{Code, FieldPath, Severity, nearest},
    schema::{EMBEDDED, INT_OR_STRING, NestedSchema, PRESERVE, Schema},
};
use orkestra_object::value::{Map, Node, Path};

/// The types of structural schemas.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// The reasons that a rule can give.
const REASONS: [&str; 4] = [
    "FieldValueRequired",
    "FieldValueInvalid",
    "FieldValueForbidden",
    "FieldValueDuplicate",
];
/// The maximum nesting of a schema that is checked.
const MOST_DEPTH: usize = 100;
/// Where a schema is.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    is_root: bool,
}

/// Checks the schema of complete objects.
pub(crate) fn check(check: &mut Check, schema: &Node, at: &FieldPath) {
    let place = Place {
        depth: MOST_DEPTH,
        is_root: true,
    };
    if schema.get("type").and_then(Node::as_str) != Some("object") {
        let message = "the schema of complete objects must have `type: object`";
        check.refuse(&at.field("type"), message);
    }
    if flag(schema, "nullable") {
        check.refuse(&at.field("nullable"), "complete objects cannot be null");
    }
    if let Some(metadata) = schema.get("properties").and_then(|all| all.get("metadata")) {
        let fields = keys(metadata.get("properties"));
        for name in fields.filter(|name| !["name", "generateName"].contains(name)) {
            let at = at
                .field("properties")
                .field("metadata")
                .field("properties")
                .field(name);
            check.refuse(
                &at,
                "only `name` and `generateName` of the metadata can be restricted",
            );
        }
    }
    level(check, schema, at, place);
}

// Over 60 lines: one check after the other of one schema.
fn level(check: &mut Check, schema: &Node, at: &FieldPath, place: Place) {
    let Some(depth) = place.depth.checked_sub(1) else {
        return;
    };
    if schema.as_map().is_none() {
        let message = format!("expected a schema, found a {}", schema.type_name());
        check.refuse(at, message);
        return;
    }
    let below = Place {
        depth,
        is_root: false,
    };
    type_of(check, schema, at);
    keywords::check(check, schema, at);
    restriction::check(check, schema, at, depth);
    if let Some(values) = schema.get("additionalProperties") {
        // `true` beside properties keeps unknown fields.
        if *values != Node::Bool(true) && !is_empty_map(schema.get("properties")) {
            let message = "`properties` and `additionalProperties` are mutually exclusive";
            check.refuse(&at.field("additionalProperties"), message);
        }
        if values.as_map().is_some() {
            level(check, values, &at.field("additionalProperties"), below);
        }
    }
    for (name, property) in entries(schema, "properties") {
        let at = at.field("properties").field(name);
        if place.is_root && ["apiVersion", "kind", "metadata"].contains(&name) {
            let expected = if name == "metadata" {
                "object"
            } else {
                "string"
            };
            if property.get("type").and_then(Node::as_str) != Some(expected) {
                check.refuse(
                    &at.field("type"),
                    format!("`{name}` must have `type: {expected}`"),
                );
            }
            if property.get("default").is_some() {
                check.refuse(
                    &at.field("default"),
                    format!("`{name}` cannot have a default"),
                );
            }
            continue;
        }
        level(check, property, &at, below);
    }
    match schema.get("items") {
        Some(items @ Node::Map(_)) => level(check, items, &at.field("items"), below),
        Some(Node::List(_)) => {
            check.refuse(&at.field("items"), "expected one schema, found a list");
        }
        None if schema.get("type").and_then(Node::as_str) == Some("array") => {
            check.refuse(&at.field("items"), "a list must declare its items");
        }
        _ => {}
    }
    lists(check, schema, at);
    default(check, schema, at, place.is_root);
    rules(check, schema, at, place.is_root);
}

fn type_of(check: &mut Check, schema: &Node, at: &FieldPath) {
    let is_either = flag(schema, INT_OR_STRING);
    match schema.get("type") {
        Some(Node::Str(word)) if TYPES.contains(&word.as_str()) => {}
        Some(Node::Str(word)) if !word.is_empty() => {
            let message = format!("`{word}` is not a type");
            let near = match word.as_str() {
                "int" | "int32" | "int64" | "long" => Some("integer"),
                "float" | "double" => Some("number"),
                "bool" => Some("boolean"),
                "str" | "text" => Some("string"),
                "list" => Some("array"),
                "map" | "dict" => Some("object"),
                other => nearest(other, TYPES),
            };
            let hint = near.map_or_else(
                || format!("expected one of {}", TYPES.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            check.refuse_hint(&at.field("type"), message, hint);
        }
        Some(Node::List(_)) => {
            check.refuse(&at.field("type"), "expected one type, found a list");
        }
        _ if is_either || flag(schema, PRESERVE) => {}
        _ => check.refuse(&at.field("type"), "the field is required"),
    }
    let type_ = schema.get("type").and_then(Node::as_str);
    if flag(schema, EMBEDDED) {
        if type_ != Some("object") {
            check.refuse(
                &at.field("type"),
                format!("`{EMBEDDED}` requires `type: object`"),
            );
        }
        if !flag(schema, PRESERVE) && is_empty_map(schema.get("properties")) {
            let message = format!("`{EMBEDDED}` requires `properties` or `{PRESERVE}`");
            check.refuse(&at.field("properties"), message);
        }
    }
    if schema.get(PRESERVE).and_then(Node::as_bool) == Some(false) {
        check.refuse(&at.field(PRESERVE), "only `true` is valid");
    }
}

// Over 60 lines: the rules of one pair of keywords.
fn lists(check: &mut Check, schema: &Node, at: &FieldPath) {
    let type_ = schema.get("type").and_then(Node::as_str);
    let list_type = schema.get("x-kubernetes-list-type").and_then(Node::as_str);
    let keys = schema
        .get("x-kubernetes-list-map-keys")
        .and_then(Node::as_list);
    let (at_type, at_keys) = (
        at.field("x-kubernetes-list-type"),
        at.field("x-kubernetes-list-map-keys"),
    );
    match list_type {
        Some("atomic" | "set" | "map") if type_ != Some("array") => {
            check.refuse(&at_type, "it requires `type: array`");
        }
        Some("atomic" | "set" | "map") | None => {}
        Some(other) => {
            check.refuse(
                &at_type,
                format!("`{other}` is not one of atomic, set, map"),
            );
        }
    }
    match schema.get("x-kubernetes-map-type").and_then(Node::as_str) {
        Some("atomic" | "granular") if type_ != Some("object") => {
            check.refuse(
                &at.field("x-kubernetes-map-type"),
                "it requires `type: object`",
            );
        }
        Some("atomic" | "granular") | None => {}
        Some(other) => {
            let message = format!("`{other}` is not one of atomic, granular");
            check.refuse(&at.field("x-kubernetes-map-type"), message);
        }
    }
    let items = schema.get("items").unwrap_or(&Node::Null);
    let keys = keys.unwrap_or_default();
    if list_type != Some("map") {
        if !keys.is_empty() {
            check.refuse(&at_keys, "it requires `x-kubernetes-list-type: map`");
        }
        if list_type == Some("set") && flag(items, "nullable") {
            check.refuse(
                &at.field("items").field("nullable"),
                "items of a set cannot be null",
            );
        }
        let of_items = items.get("type").and_then(Node::as_str);
        let is_atomic = |keyword| items.get(keyword).and_then(Node::as_str) == Some("atomic");
        if list_type == Some("set")
            && (of_items == Some("object") && !is_atomic("x-kubernetes-map-type")
                || of_items == Some("array")
                    && items.get("x-kubernetes-list-type").is_some()
                    && !is_atomic("x-kubernetes-list-type"))
        {
            check.refuse(&at.field("items"), "items of a set are scalars or atomic");
        }
        return;
    }
    if keys.is_empty() {
        check.refuse(
            &at_keys,
            "`x-kubernetes-list-type: map` requires at least one key",
        );
    }
    if items.get("type").and_then(Node::as_str) != Some("object") {
        check.refuse(
            &at.field("items").field("type"),
            "items of an associative list are objects",
        );
        return;
    }
    let required = words_of(items.get("required"));
    for (index, key) in keys.iter().enumerate() {
        let key = key.as_str().unwrap_or_default();
        let at = at_keys.index(index);
        let Some(field) = items.get("properties").and_then(|all| all.get(key)) else {
            check.refuse(&at, format!("the items have no field `{key}`"));
            continue;
        };
        let type_ = field.get("type").and_then(Node::as_str);
        if type_.is_none_or(|type_| ["array", "object"].contains(&type_)) {
            check.refuse(&at, format!("the key `{key}` is not a scalar"));
        }
        if !required.contains(key) && field.get("default").is_none() {
            let message = format!("the key `{key}` must be required or have a default");
            check.refuse(&at, message);
        }
    }
}

fn default(check: &mut Check, schema: &Node, at: &FieldPath, is_root: bool) {
    let Some(value) = schema.get("default") else {
        return;
    };
    let at = at.field("default");
    if is_root {
        check.refuse(&at, "complete objects cannot have a default");
        return;
    }
    // As if there were none.
    if *value == Node::Null {
        return;
    }
    let found = check_default(schema, value, &at);
    for mut problem in found
        .into_iter()
        .filter(|one| one.severity == Severity::Error)
    {
        problem.code = Code::RefusedDefinition;
        problem.message = format!("the default is not valid: {}", problem.message);
        check.found.push(problem);
    }
}

fn rules(check: &mut Check, schema: &Node, at: &FieldPath, is_root: bool) {
    let rules = schema
        .get("x-kubernetes-validations")
        .and_then(Node::as_list);
    for (index, rule) in rules.unwrap_or_default().iter().enumerate() {
        let at = at.field("x-kubernetes-validations").index(index);
        check.known(
            rule,
            &at,
            &[
                "rule",
                "message",
                "messageExpression",
                "reason",
                "fieldPath",
                "optionalOldSelf",
            ],
        );
        let Some(expression) = check.required(rule, "rule", &at) else {
            continue;
        };
        messages(check, rule, schema, (expression, &at));
        match check_rule(schema, expression, is_root) {
            None => {}
            Some(RuleProblem::Syntax(why)) => {
                check.refuse(
                    &at.field("rule"),
                    format!("the rule cannot be parsed: {why}"),
                );
            }
            Some(RuleProblem::NoSuchField(path)) => {
                let message = format!("the rule reads `{path}`, which the schema does not have");
                check.refuse(&at.field("rule"), message);
            }
        }
    }
}

/// Checks the message, the reason and the place of a rule.
fn messages(check: &mut Check, rule: &Node, schema: &Node, (expression, at): (&str, &FieldPath)) {
    let text = |field: &str| rule.get(field).and_then(Node::as_str);
    let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    if text("message").is_some_and(|text| text.contains('\n') || is_blank(text)) {
        let message = "a message is one line that is not empty";
        check.refuse(&at.field("message"), message);
    }
    let has_lines = expression.trim().contains('\n');
    if has_lines && text("message").is_none() && text("messageExpression").is_none() {
        let message = "a rule of several lines requires a `message`";
        check.refuse(&at.field("message"), message);
    }
    if let Some(reason) = text("reason").filter(|reason| !REASONS.contains(reason)) {
        let message = format!("`{reason}` is not one of {}", REASONS.join(", "));
        check.refuse(&at.field("reason"), message);
    }
    if let Some(path) = text("fieldPath").filter(|path| !path.is_empty()) {
        let names = path
            .trim_start_matches('.')
            .replace("['", ".")
            .replace("']", "");
        let path_of = Path::of_fields(names.split('.').filter(|name| !name.is_empty()));
        let end = Schema::of_part(schema).at_path(&path_of);
        if matches!(end, NestedSchema::Nowhere) || !path.starts_with(['.', '[']) {
            let message = format!("`{path}` is not a field of the schema");
            check.refuse(&at.field("fieldPath"), message);
        }
    }
}

fn is_empty_map(map: Option<&Node>) -> bool {
    map.and_then(Node::as_map).is_none_or(Map::is_empty)
}
