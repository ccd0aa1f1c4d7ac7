//! `patch`: the part of an entry that is merged into the object generated from its other fields.
//!
//! It is a strategic merge, as in `kubectl patch`: maps are merged key by key, `null` removes a key, a list is merged by
//! all keys of its items where the schema of the kind has keys, and replaced everywhere else. `$patch: replace` and
//! `$patch: delete` have the same meaning.

use std::collections::BTreeMap;

use crate::scope::{At, Fields};
use orkestra_language::{api::names, diagnostics::Code};
use orkestra_object::value::{Map, Node};
use orkestra_plan::{
    ObjectTree,
    patch::{DELETE, DIRECTIVE, REPLACE},
};

/// Metadata fields that may be patched.
const METADATA: [&str; 3] = ["annotations", "finalizers", "labels"];

/// Compiles the patch at `at`; forbidden fields are reported.
pub(crate) fn tree(at: &At<'_>, patch: &BTreeMap<String, Node>) -> Option<ObjectTree> {
    let mut fields = Fields::default();
    for (key, node) in patch {
        let place = at.field(key);
        match key.as_str() {
            "apiVersion" | "kind" | "status" => refuse(&at.key(key), key),
            "stringData" => at.key(key).error_hint(
                Code::PatchRefused,
                "`stringData` cannot be patched: the API server does not record its owner",
                "write the value under `data` of the entry",
            ),
            "metadata" => metadata(&place, node),
            _ => check(&place, node),
        }
        fields.put(key, place.manifest(node));
    }
    fields.into_optional()
}

fn refuse(at: &At<'_>, path: &str) {
    let message = format!("`{path}` cannot be patched: it is part of the identity of the object");
    let hint = "name and namespace are fields of the entry";
    at.error_hint(Code::PatchRefused, message, hint);
}

fn metadata(at: &At<'_>, node: &Node) {
    for (key, below) in node.as_map().into_iter().flat_map(Map::iter) {
        if METADATA.contains(&&**key) {
            check(&at.field(key), below);
        } else {
            refuse(&at.key(key), &format!("metadata.{key}"));
        }
    }
}

/// Checks constraints outside of Kubernetes' schemas: directives and reserved keys.
fn check(at: &At<'_>, node: &Node) {
    match node {
        Node::Map(entries) => {
            for (key, below) in entries.iter() {
                if key.starts_with(names::PREFIX) {
                    at.key(key).reserved();
                } else if key.starts_with('$') {
                    directive(at, key, below);
                } else {
                    check(&at.field(key), below);
                }
            }
        }
        Node::List(items) => {
            for (index, item) in items.iter().enumerate() {
                check(&at.index(index), item);
            }
        }
        _ => {}
    }
}

fn directive(at: &At<'_>, key: &str, node: &Node) {
    let word = node.as_str().unwrap_or_default();
    if key != DIRECTIVE {
        let message = format!("unknown directive `{key}`: only `{DIRECTIVE}` is supported");
        at.key(key).error(Code::UnknownField, message);
    } else if ![REPLACE, DELETE].contains(&word) {
        let message = format!("`{}` is none of {REPLACE}, {DELETE}", node.to_text());
        at.field(key).error(Code::UnknownWord, message);
    }
}
