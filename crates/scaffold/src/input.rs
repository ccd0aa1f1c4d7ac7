//! Reads files into objects.

use serde_json::Value;

use orkestra_language::diagnostics::{Diagnostic, Severity};
use orkestra_language::document::parse_stream;

/// The maximum number of objects.
const MAX_OBJECTS: usize = 1000;

/// An input file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The name in messages.
    pub name: String,
    /// The contents.
    pub text: String,
}

/// The reason why there is no draft.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A file is not valid YAML.
    #[error("cannot read the input: {0}")]
    Syntax(Box<Diagnostic>),
    /// The input has no object that a Katalog can be based on.
    #[error("{0}")]
    Nothing(String),
    /// A required field is missing or wrong.
    #[error("{object}: `{field}` {problem}")]
    Field {
        /// The object with the field.
        object: String,
        /// Its path.
        field: String,
        /// The message.
        problem: String,
    },
    /// More objects than one Katalog should have.
    #[error("the input has more than {MAX_OBJECTS} objects: convert a part of them")]
    TooMany,
    /// The draft cannot be written. This is a bug in Orkestra.
    #[error("cannot write YAML: {0}")]
    Write(String),
}

/// Returns the objects of files, with lists expanded.
///
/// # Errors
/// [`Error::Syntax`] for the first text that is not YAML; [`Error::TooMany`].
pub(crate) fn objects(inputs: &[Input]) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    for input in inputs {
        let stream = parse_stream(&input.name, &input.text);
        if let Some(problem) = stream
            .problems
            .iter()
            .find(|one| one.severity == Severity::Error)
        {
            return Err(Error::Syntax(Box::new(problem.clone())));
        }
        for source in &stream.sources {
            unwrap(source.tree.to_json(), &mut found);
            if found.len() > MAX_OBJECTS {
                return Err(Error::TooMany);
            }
        }
    }
    for object in &mut found {
        clean(object);
        drop_nulls(object);
    }
    Ok(found)
}

/// Expands a list to its items; keeps any other object.
fn unwrap(object: Value, found: &mut Vec<Value>) {
    let is_list = object["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("List"));
    match object {
        Value::Object(mut map) if is_list && map.get("items").is_some_and(Value::is_array) => {
            if let Some(Value::Array(items)) = map.remove("items") {
                found.extend(items.into_iter().filter(Value::is_object));
            }
        }
        Value::Object(map) => found.push(Value::Object(map)),
        _ => {}
    }
}

/// Removes fields without a value: Kubernetes treats them as missing.
fn drop_nulls(node: &mut Value) {
    match node {
        Value::Object(map) => {
            map.retain(|_, below| !below.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Removes the fields that the API server writes.
fn clean(object: &mut Value) {
    const METADATA: [&str; 8] = [
        "creationTimestamp",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    ];
    const ANNOTATIONS: [&str; 2] = [
        "deployment.kubernetes.io/revision",
        "kubectl.kubernetes.io/last-applied-configuration",
    ];
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    fields.remove("status");
    let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    for field in METADATA {
        metadata.remove(field);
    }
    for field in ["annotations", "labels"] {
        let Some(map) = metadata.get_mut(field).and_then(Value::as_object_mut) else {
            continue;
        };
        map.retain(|key, _| {
            !ANNOTATIONS.contains(&&**key)
                && !key.starts_with(orkestra_language::api::names::PREFIX)
        });
        if map.is_empty() {
            metadata.remove(field);
        }
    }
}

/// Returns the error for a field of an object.
pub(crate) fn wrong(object: &str, field: &str, problem: &str) -> Error {
    Error::Field {
        object: object.to_owned(),
        field: field.to_owned(),
        problem: problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Value>, Error> {
        let name = "a.yaml".to_owned();
        let text = text.to_owned();
        objects(&[Input { name, text }])
    }

    #[test]
    fn lists_are_taken_apart_and_what_the_server_writes_goes() {
        let found = read(
            "kind: List\nitems:\n- kind: A\n  metadata: {name: x, uid: y, labels: {orkestra.orkspace.io/managed: a}}\n  status: {}\n- 3\n---\n- b\n---\nkind: B\n",
        )
        .unwrap();
        assert_eq!(
            found,
            [
                serde_json::json!({ "kind": "A", "metadata": { "name": "x" } }),
                serde_json::json!({ "kind": "B" })
            ]
        );
    }

    #[test]
    fn what_is_no_yaml_is_an_error_with_its_place() {
        let why = read("a: [").unwrap_err().to_string();
        assert!(why.contains("a.yaml"), "{why}");
        let many = "---\nkind: A\n".repeat(1001);
        assert!(read(&many).is_err());
    }
}
