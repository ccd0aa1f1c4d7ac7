//! `allOf`, `anyOf`, `oneOf` and `not`: they restrict values, and declare nothing.

use super::{Check, flag, keywords};
use crate::definitions::object::entries;
use orkestra_language::diagnostics::FieldPath;
use orkestra_object::value::{Map, Node};

/// Keywords that only the schema outside of them may have.
const DECLARING: [&str; 7] = [
    "type",
    "description",
    "default",
    "additionalProperties",
    "nullable",
    "title",
    "x-kubernetes-validations",
];

/// Checks the restrictions of a schema.
pub(crate) fn check(check: &mut Check, schema: &Node, at: &FieldPath, depth: usize) {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let all = schema.get(keyword).and_then(Node::as_list);
        for (index, one) in all.unwrap_or_default().iter().enumerate() {
            let is_written_out = is_int_or_string(schema, keyword);
            restriction(
                check,
                one,
                schema,
                (&at.field(keyword).index(index), depth, is_written_out),
            );
        }
    }
    if let Some(not) = schema.get("not") {
        restriction(check, not, schema, (&at.field("not"), depth, false));
    }
}

/// `anyOf: [{type: integer}, {type: string}]` beside `x-kubernetes-int-or-string`.
fn is_int_or_string(schema: &Node, keyword: &str) -> bool {
    flag(schema, "x-kubernetes-int-or-string") && ["anyOf", "allOf"].contains(&keyword)
}

fn restriction(
    check: &mut Check,
    one: &Node,
    declared: &Node,
    (at, depth, is_written_out): (&FieldPath, usize, bool),
) {
    if depth == 0 {
        return;
    }
    keywords::check(check, one, at);
    let fields = one.as_map().into_iter().flat_map(Map::keys);
    for keyword in
        fields.filter(|key| DECLARING.contains(&key.as_str()) || key.starts_with("x-kubernetes-"))
    {
        if is_written_out && keyword.as_str() == "type" {
            continue;
        }
        let message = format!("`{keyword}` is not valid in a restriction");
        let hint = "declare it in the schema outside of allOf, anyOf, oneOf and not";
        check.refuse_hint(&at.field(keyword), message, hint);
    }
    // What the schema outside does not declare may be restricted, too.
    for (name, below) in entries(one, "properties") {
        let at = at.field("properties").field(name);
        let outside = declared.get("properties").and_then(|all| all.get(name));
        let outside = outside.unwrap_or(&Node::Null);
        let is_written_out = is_int_or_string(outside, "anyOf");
        restriction(check, below, outside, (&at, depth - 1, is_written_out));
    }
    if let Some(items) = one.get("items") {
        let outside = declared.get("items").unwrap_or(&Node::Null);
        restriction(
            check,
            items,
            outside,
            (&at.field("items"), depth - 1, false),
        );
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let all = one.get(keyword).and_then(Node::as_list);
        for (index, inner) in all.unwrap_or_default().iter().enumerate() {
            let at = at.field(keyword).index(index);
            restriction(check, inner, declared, (&at, depth - 1, is_written_out));
        }
    }
    if let Some(not) = one.get("not") {
        restriction(check, not, declared, (&at.field("not"), depth - 1, false));
    }
}
