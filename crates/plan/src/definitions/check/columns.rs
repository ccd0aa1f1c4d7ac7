//! Printer columns, subresources and selectable fields.

use std::collections::BTreeSet;

use super::{Check, flag};
use orkestra_language::diagnostics::FieldPath;
use orkestra_object::value::Node;

/// The types of printer columns.
const TYPES: [&str; 5] = ["integer", "number", "string", "boolean", "date"];
/// The most selectable fields of a version.
const MOST_SELECTABLE: usize = 8;

/// Checks the parts of a version that name fields of its schema.
// Over 60 lines: one check after the other of one version.
pub(crate) fn check(check: &mut Check, version: &Node, schema: &Node, at: &FieldPath) {
    let list = |field: &str| {
        version
            .get(field)
            .and_then(Node::as_list)
            .unwrap_or_default()
    };
    for (index, column) in list("additionalPrinterColumns").iter().enumerate() {
        let at = at.field("additionalPrinterColumns").index(index);
        check.known(
            column,
            &at,
            &[
                "name",
                "type",
                "jsonPath",
                "format",
                "description",
                "priority",
            ],
        );
        check.required(column, "name", &at);
        if let Some(type_) = check.required(column, "type", &at)
            && !TYPES.contains(&type_)
        {
            let message = format!("`{type_}` is not one of {}", TYPES.join(", "));
            check.refuse(&at.field("type"), message);
        }
        if let Some(path) = check.required(column, "jsonPath", &at) {
            json_path(check, path, &at.field("jsonPath"));
        }
    }
    if let Some(scale) = version.get("subresources").and_then(|all| all.get("scale")) {
        let at = at.field("subresources").field("scale");
        for (field, root, is_required) in [
            ("specReplicasPath", ".spec.", true),
            ("statusReplicasPath", ".status.", true),
            ("labelSelectorPath", ".s", false),
        ] {
            let path = if is_required {
                check.required(scale, field, &at)
            } else {
                scale
                    .get(field)
                    .and_then(Node::as_str)
                    .filter(|path| !path.is_empty())
            };
            if let Some(path) = path
                && (!path.starts_with(root) || path.contains('['))
            {
                let root = if is_required {
                    root
                } else {
                    ".spec. or .status."
                };
                let message = format!("`{path}` is not a path of fields below {root}");
                check.refuse(&at.field(field), message);
            }
        }
    }
    selectable(
        check,
        list("selectableFields"),
        schema,
        &at.field("selectableFields"),
    );
}

/// A JSON path of `kubectl` must have balanced brackets and begin with a dot.
fn json_path(check: &mut Check, path: &str, at: &FieldPath) {
    let mut open = 0_i32;
    for c in path.chars() {
        match c {
            '[' | '(' | '{' => open += 1,
            ']' | ')' | '}' => open -= 1,
            _ => {}
        }
    }
    if !path.starts_with('.') || open != 0 {
        let message = format!("`{path}` is not a JSON path");
        check.refuse_hint(at, message, "expected a path such as `.spec.replicas`");
    }
}

fn selectable(check: &mut Check, fields: &[Node], schema: &Node, at: &FieldPath) {
    if fields.len() > MOST_SELECTABLE {
        let message = format!("at most {MOST_SELECTABLE} fields are selectable");
        check.refuse(at, message);
    }
    let mut seen = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let at = at.index(index);
        let Some(path) = check.required(field, "jsonPath", &at) else {
            continue;
        };
        let at = at.field("jsonPath");
        if !seen.insert(path) {
            check.refuse(&at, format!("`{path}` is declared twice"));
        }
        let names = path.strip_prefix('.').unwrap_or_default().split('.');
        let mut names = names;
        let end = names.try_fold(schema, |node, name| node.get("properties")?.get(name));
        let is_scalar = |node: &Node| {
            let type_ = node.get("type").and_then(Node::as_str);
            type_.is_some_and(|type_| ["string", "boolean", "integer"].contains(&type_))
                && !flag(node, "nullable")
        };
        if !end.is_some_and(is_scalar) || path.starts_with(".metadata") {
            let message = format!("`{path}` is not a string, boolean or integer of the schema");
            check.refuse(&at, message);
        }
    }
}
