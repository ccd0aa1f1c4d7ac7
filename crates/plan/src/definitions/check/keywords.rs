//! The keywords of schemas and of their restrictions.

use super::{Check, flag};
use crate::{definitions::object::KNOWN_FORMATS, regex};
use orkestra_language::{
    diagnostics::{FieldPath, nearest},
    schema::{EMBEDDED, INT_OR_STRING, PRESERVE},
};
use orkestra_object::value::{Key, Map, Node};

/// Keywords of JSON Schema that structural schemas cannot have.
const FORBIDDEN: [&str; 9] = [
    "id",
    "$schema",
    "$ref",
    "definitions",
    "dependencies",
    "patternProperties",
    "additionalItems",
    "deprecated",
    "discriminator",
];
/// The keywords of structural schemas.
const KNOWN: [&str; 40] = [
    "id",
    "$schema",
    "$ref",
    "description",
    "type",
    "nullable",
    "format",
    "title",
    "default",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "enum",
    "maxProperties",
    "minProperties",
    "required",
    "items",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "properties",
    "additionalProperties",
    "externalDocs",
    "example",
    PRESERVE,
    EMBEDDED,
    INT_OR_STRING,
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
];

/// Checks keywords that are valid in schemas and in restrictions.
// Over 60 lines: one check for each keyword.
pub(crate) fn check(check: &mut Check, schema: &Node, at: &FieldPath) {
    for keyword in keys(Some(schema)) {
        if FORBIDDEN.contains(&keyword) {
            check.refuse(
                &at.field(keyword),
                format!("`{keyword}` is not valid in a structural schema"),
            );
        } else if !KNOWN.contains(&keyword) {
            let message = format!("unknown field `{keyword}`");
            let hint = nearest(keyword, KNOWN);
            let hint = hint.map_or_else(
                || "a schema has only the keywords of OpenAPI v3".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            check.refuse_hint(&at.field(keyword), message, hint);
        }
    }
    if flag(schema, "uniqueItems") {
        let message = "`uniqueItems: true` is not valid";
        let hint = "set `x-kubernetes-list-type: set`";
        check.refuse_hint(&at.field("uniqueItems"), message, hint);
    }
    if let Some(pattern) = schema.get("pattern").and_then(Node::as_str)
        && let Err(why) = regex(pattern)
    {
        check.refuse(
            &at.field("pattern"),
            format!("`{pattern}` is not a valid expression: {why}"),
        );
    }
    if let Some(format) = schema.get("format").and_then(Node::as_str)
        && !KNOWN_FORMATS.contains(&format)
    {
        let message = format!("the API server does not check the format `{format}`");
        check.warn(&at.field("format"), message);
    }
    for keyword in [
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ] {
        match schema.get(keyword) {
            None | Some(Node::Null | Node::Int(_)) => {}
            Some(_) => check.refuse(&at.field(keyword), "expected an integer"),
        }
    }
    for keyword in ["minimum", "maximum", "multipleOf"] {
        if let Some(value) = schema.get(keyword)
            && !matches!(
                value,
                Node::Int(_) | Node::UInt(_) | Node::Float(_) | Node::Null
            )
        {
            check.refuse(&at.field(keyword), "expected a number");
        }
    }
    for keyword in [
        "exclusiveMinimum",
        "exclusiveMaximum",
        "nullable",
        "uniqueItems",
    ] {
        if let Some(value) = schema.get(keyword)
            && !matches!(value, Node::Bool(_) | Node::Null)
        {
            check.refuse(&at.field(keyword), "expected `true` or `false`");
        }
    }
    for keyword in ["required", "enum", "allOf", "anyOf", "oneOf"] {
        if let Some(value) = schema.get(keyword)
            && !matches!(value, Node::List(_) | Node::Null)
        {
            let message = format!("expected a list, found a {}", value.type_name());
            check.refuse(&at.field(keyword), message);
        }
    }
}

/// Returns the keys of a map.
pub(crate) fn keys(map: Option<&Node>) -> impl Iterator<Item = &str> {
    let map = map.and_then(Node::as_map);
    map.into_iter().flat_map(Map::keys).map(Key::as_str)
}
