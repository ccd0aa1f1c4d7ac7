//! The metadata of custom resources.
//!
//! Source: Kubernetes, `ValidateObjectMeta` with `NameIsDNSSubdomain`.

use super::{flag, structure::Structure};
use orkestra_language::{
    api::names,
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    schema::{NestedSchema, Schema},
};
use orkestra_object::value::{Map, Node};

/// The maximum size of all annotations of an object, in bytes.
const ANNOTATION_BYTES: usize = 256 * 1024;

/// Checks names, labels and annotations.
pub(crate) fn check(object: &Node, found: &mut Diagnostics) {
    let at = FieldPath::root().field("metadata");
    let mut refuse = |path: FieldPath, why: String, hint: Option<String>| {
        let mut problem = Diagnostic::error(Code::RefusedResource, path, why);
        problem.hint = hint;
        found.push(problem);
    };
    let check_name = names::check_dns1123_subdomain;
    match (object.meta_text("name"), object.meta_text("generateName")) {
        (Some(name), _) if !name.is_empty() => {
            if let Err(why) = check_name(name) {
                let hint = names::instead(name, check_name);
                refuse(at.field("name"), why, hint);
            }
        }
        (_, Some(prefix)) if !prefix.is_empty() => {
            // The API server appends letters and digits.
            if check_name(&format!("{prefix}x")).is_err() {
                let why = format!("`{prefix}` is not valid at the start of a name");
                refuse(at.field("generateName"), why, None);
            }
        }
        _ => refuse(at.field("name"), "the field is required".to_owned(), None),
    }
    let map = |field: &str| object.meta(field).and_then(Node::as_map);
    for (key, value) in map("labels").into_iter().flat_map(Map::iter) {
        let at = at.field("labels").field(key);
        if let Err(why) = names::check_label_key(key) {
            refuse(at, why, None);
        } else if let Some(text) = value.as_str()
            && let Err(why) = names::check_label_value(text)
        {
            refuse(at, why, names::instead(text, names::check_label_value));
        }
    }
    let mut bytes = 0;
    for (key, value) in map("annotations").into_iter().flat_map(Map::iter) {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        // Unlike labels, annotations may have upper case in the domain.
        if let Err(why) = names::check_label_key(&key.to_ascii_lowercase()) {
            refuse(at.field("annotations").field(key), why, None);
        }
    }
    if bytes > ANNOTATION_BYTES {
        let why = format!("annotations have {bytes} bytes; at most {ANNOTATION_BYTES} are valid");
        refuse(at.field("annotations"), why, None);
    }
    let finalizers = object.meta("finalizers").and_then(Node::as_list);
    for (index, finalizer) in finalizers.unwrap_or_default().iter().enumerate() {
        if let Some(text) = finalizer.as_str()
            && let Err(why) = names::check_label_key(text)
        {
            refuse(at.field("finalizers").index(index), why, None);
        }
    }
}

/// Checks what the definition itself declares about `metadata`: only name and generateName may be restricted.
pub(crate) fn check_declared(schema: &Node, object: &Node, structure: &mut Structure<'_>) {
    let Some(declared) = schema.get("properties").and_then(|all| all.get("metadata")) else {
        return;
    };
    let at = FieldPath::root().field("metadata");
    for name in ["name", "generateName"] {
        let value = object.meta(name).filter(|value| **value != Node::Null);
        if let (NestedSchema::Schema(below), Some(value)) =
            (Schema::of_part(declared).field(name), value)
            && !flag(below.node(), "x-kubernetes-preserve-unknown-fields")
        {
            structure.check(&below, value, &at.field(name));
        }
    }
}
