//! An object as the API server's structured merge sees it: the paths that can be owned, with their values.
//!
//! Source: Kubernetes API reference, `x-kubernetes-list-type`, `x-kubernetes-map-type` and list map keys of the built-in
//! kinds; structured-merge-diff, `ToFieldSet`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// `f:`
    Field(String),
    /// `k:`, the keys as compact JSON.
    Item(String),
    /// `v:`, the value as JSON.
    Member(String),
}

/// A path from an object's root to a field that can be owned.
pub(crate) type Trail = Vec<Step>;

/// All paths of an object that can be owned. The value of an item's own path and of an empty map is an empty map.
pub(crate) type Leaves = BTreeMap<Trail, Value>;

/// The way in which a list or map is merged.
enum Shape {
    /// Field by field.
    Granular,
    /// As one value.
    Atomic,
    /// Items by their keys; an absent key has the default.
    Keyed(&'static [(&'static str, Option<&'static str>)]),
    /// A set of values.
    Set,
}

/// Returns the shape of the list or map at `path`, with field names joined by dots. A path that ends in a dot means the items of
/// a list.
fn shape(kind: &str, path: &str, value: &Value) -> Shape {
    let pod = path.strip_prefix("spec.template.").unwrap_or(path);
    match (kind, pod) {
        (_, "metadata.ownerReferences") => Shape::Keyed(&[("uid", None)]),
        (_, "metadata.finalizers") => Shape::Set,
        ("Deployment", "spec.containers" | "spec.volumes" | "spec.containers.env") => {
            Shape::Keyed(&[("name", None)])
        }
        ("Deployment", "spec.imagePullSecrets") => Shape::Keyed(&[("name", None)]),
        ("Deployment", "spec.containers.volumeMounts") => Shape::Keyed(&[("mountPath", None)]),
        ("Deployment", "spec.containers.ports") => {
            Shape::Keyed(&[("containerPort", None), ("protocol", Some("TCP"))])
        }
        ("Service", "spec.ports") => Shape::Keyed(&[("port", None), ("protocol", Some("TCP"))]),
        (_, "metadata.ownerReferences.")
        | (
            "Deployment",
            "spec.selector"
            | "spec.nodeSelector"
            | "spec.imagePullSecrets."
            | "spec.containers.env.valueFrom.secretKeyRef"
            | "spec.containers.env.valueFrom.configMapKeyRef"
            | "spec.containers.env.valueFrom.fieldRef",
        )
        | ("Service", "spec.selector") => Shape::Atomic,
        _ if value.is_array() => Shape::Atomic,
        _ => Shape::Granular,
    }
}

/// Returns the paths of an object that can be owned.
pub(crate) fn leaves(object: &Value) -> Leaves {
    let kind = object["kind"].as_str().unwrap_or_default();
    let mut leaves = Leaves::new();
    for (name, value) in object.as_object().unwrap() {
        if !matches!(name.as_str(), "apiVersion" | "kind") {
            flatten(
                kind,
                value,
                name,
                &mut vec![Step::Field(name.clone())],
                &mut leaves,
            );
        }
    }
    leaves.retain(|trail, _| !is_identity(trail));
    leaves
}

fn is_identity(trail: &Trail) -> bool {
    let names = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "managedFields",
        "generation",
    ];
    matches!(&trail[..], [Step::Field(root), Step::Field(name), ..]
        if root == "metadata" && names.contains(&name.as_str()))
}

fn flatten(kind: &str, value: &Value, path: &str, trail: &mut Trail, leaves: &mut Leaves) {
    match (value, shape(kind, path, value)) {
        (Value::Object(map), Shape::Granular) => {
            if map.is_empty() {
                leaves.insert(trail.clone(), json!({}));
            }
            for (name, value) in map {
                trail.push(Step::Field(name.clone()));
                let dot = if path.ends_with('.') { "" } else { "." };
                flatten(kind, value, &format!("{path}{dot}{name}"), trail, leaves);
                trail.pop();
            }
        }
        (Value::Array(items), Shape::Keyed(keys)) => {
            for item in items {
                trail.push(Step::Item(keys_of(item, keys)));
                leaves.insert(trail.clone(), json!({}));
                // A list of atomic maps has no paths below its items.
                flatten(kind, item, &format!("{path}."), trail, leaves);
                trail.pop();
            }
        }
        (Value::Array(items), Shape::Set) => {
            for item in items {
                trail.push(Step::Member(item.to_string()));
                leaves.insert(trail.clone(), item.clone());
                trail.pop();
            }
        }
        _ => {
            leaves.insert(trail.clone(), value.clone());
        }
    }
}

fn keys_of(item: &Value, keys: &[(&str, Option<&str>)]) -> String {
    let keys = keys.iter().map(|(key, default)| {
        let value = match (item.get(key), default) {
            (Some(value), _) => value.clone(),
            (None, Some(default)) => json!(default),
            (None, None) => panic!("an item without {key}: {item}"),
        };
        ((*key).to_owned(), value)
    });
    Value::Object(keys.collect()).to_string()
}

/// Returns the fields of an object with these leaves.
pub(crate) fn object(leaves: &Leaves) -> Value {
    let mut root = json!({});
    for (trail, value) in leaves {
        put(&mut root, trail, value);
    }
    root
}

fn put(at: &mut Value, trail: &[Step], value: &Value) {
    let Some((step, rest)) = trail.split_first() else {
        // The item's own path may come after its fields or before them; the item has its keys already.
        if !(value == &json!({}) && at.is_object()) {
            *at = value.clone();
        }
        return;
    };
    match step {
        Step::Field(name) => {
            if !at.is_object() {
                *at = json!({});
            }
            put(
                at.as_object_mut()
                    .unwrap()
                    .entry(name)
                    .or_insert(Value::Null),
                rest,
                value,
            );
        }
        Step::Item(keys) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap();
            let items = list(at);
            let has_keys =
                |item: &Value| keys.iter().all(|(key, value)| item.get(key) == Some(value));
            let position = items.iter().position(has_keys).unwrap_or_else(|| {
                items.push(Value::Object(keys.clone()));
                items.len() - 1
            });
            put(&mut items[position], rest, value);
        }
        Step::Member(_) => list(at).push(value.clone()),
    }
}

fn list(at: &mut Value) -> &mut Vec<Value> {
    if !at.is_array() {
        *at = json!([]);
    }
    at.as_array_mut().unwrap()
}

/// Returns a path in the notation of the API server's conflict message.
pub(crate) fn refusal(trail: &Trail) -> String {
    let steps = trail.iter().map(|step| match step {
        Step::Field(name) => format!(".{name}"),
        Step::Item(keys) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap();
            let keys: Vec<String> = keys
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            format!("[{}]", keys.join(","))
        }
        Step::Member(value) => format!("[={value}]"),
    });
    steps.collect()
}

/// Returns a set of paths as `fieldsV1`.
pub(crate) fn fields_v1<'a>(trails: impl Iterator<Item = &'a Trail>) -> Value {
    let mut root = Map::new();
    for trail in trails {
        let mut at = &mut root;
        for step in trail {
            let name = match step {
                Step::Field(name) => format!("f:{name}"),
                Step::Item(keys) => format!("k:{keys}"),
                Step::Member(value) => format!("v:{value}"),
            };
            at = at
                .entry(name)
                .or_insert_with(|| json!({}))
                .as_object_mut()
                .unwrap();
        }
        at.insert(".".to_owned(), json!({}));
    }
    without_lone_dots(&mut root);
    Value::Object(root)
}

/// Replaces a path without children by an empty map.
fn without_lone_dots(fields: &mut Map<String, Value>) {
    for (_, below) in fields.iter_mut() {
        let below = below.as_object_mut().unwrap();
        if below.len() == 1 && below.contains_key(".") {
            below.clear();
        }
        without_lone_dots(below);
    }
}

#[test]
fn an_object_is_its_leaves_and_what_the_server_adds_to_keys() {
    let given = json!({
        "kind": "Deployment",
        "metadata": { "name": "a", "labels": { "x": "1" }, "finalizers": ["f"] },
        "spec": {
            "selector": { "matchLabels": { "x": "1" } },
            "template": { "spec": { "containers": [{ "name": "c", "ports": [{ "containerPort": 80 }] }] } },
        },
    });
    let leaves = leaves(&given);
    let fields = fields_v1(leaves.keys());
    assert_eq!(
        fields["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"],
        json!({ ".": {}, "f:name": {}, "f:ports": {
            "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} } } })
    );
    assert_eq!(fields["f:spec"]["f:selector"], json!({}));
    assert_eq!(
        fields["f:metadata"]["f:finalizers"],
        json!({ "v:\"f\"": {} })
    );
    let again = object(&leaves);
    assert_eq!(again["spec"]["selector"], given["spec"]["selector"]);
    assert_eq!(
        again["spec"]["template"]["spec"]["containers"][0]["ports"],
        json!([{ "containerPort": 80, "protocol": "TCP" }])
    );
}
