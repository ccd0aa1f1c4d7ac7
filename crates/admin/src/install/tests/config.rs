//! The manifests in `config/`, generated from the chart: a base with the default values, and an overlay for each values file.

use std::{collections::BTreeMap, fmt::Write as _, fs};

use orkestra_charts::{Budget, Capabilities, Release, render as render_chart};
use serde_json::{Value, json};

use super::{Manifests, assert_document, rendered};
use crate::install::{INVENTORY, RELEASE, chart};

const HEADER: &str =
    "# Generated from charts/orkestra: UPDATE=1 cargo test -p orkestra-admin --lib install\n";
const OVERLAYS: [&str; 4] = ["default", "ha", "no-webhooks", "single-namespace"];

/// Renders `values`, and returns the objects by kind, namespace and name, without CRDs and without the inventory.
fn objects(values: &str) -> BTreeMap<[String; 3], Value> {
    let Manifests { objects, .. } = rendered(values);
    let is_part = |object: &&crate::install::ManifestObject| {
        !object.is_definition() && object.key.name.as_str() != INVENTORY
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let keyed = objects.iter().filter(is_part).map(|object| {
        let body = object.body.to_json();
        let metadata = &body["metadata"];
        (
            [
                text(&body["kind"]),
                text(&metadata["namespace"]),
                text(&metadata["name"]),
            ],
            body.clone(),
        )
    });
    keyed.collect()
}

#[test]
fn the_base_is_the_chart_with_its_default_values() {
    let mut release = Release::new(RELEASE);
    release.namespace = "orkestra-system".to_owned();
    let values = orkestra_charts::read_values(&format!(
        "namespace: {{create: true}}\ncrds: {{install: false}}\nimage: {{repository: {}}}",
        crate::published::NO_IMAGE
    ))
    .unwrap();
    let rendered = render_chart(
        &chart().unwrap(),
        &values,
        &release,
        &Capabilities::default(),
        &Budget::default(),
    )
    .unwrap();
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for document in rendered.documents {
        if document.object.get("kind").is_none() {
            continue;
        }
        let name = document.source.rsplit('/').next().unwrap().to_owned();
        let text = files.entry(name).or_insert_with(|| HEADER.to_owned());
        let _ = write!(text, "---\n{}\n", document.text.trim());
    }
    let names: Vec<&String> = files.keys().collect();
    let list = kustomization(&json!({ "resources": names }));
    for (name, text) in &files {
        assert_document(&format!("config/base/{name}"), text);
    }
    assert_document("config/base/kustomization.yaml", &list);
    // `kubectl apply -f crds/` does not read a file without an extension.
    let crds = crate::install::definitions().into_iter();
    let crds: Vec<String> = crds
        .map(|crd| format!("{}.yaml", crd.name.split('.').next().unwrap_or_default()))
        .collect();
    let list = kustomization(&json!({ "resources": crds }));
    assert_document("crds/Kustomization", &list);
}

#[test]
fn every_overlay_changes_the_base_to_the_chart_with_its_values() {
    let found = fs::read_dir(orkestra_testkit::root().join("config/overlays")).unwrap();
    let mut found: Vec<String> = found
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, OVERLAYS);
    let base = objects("");
    for overlay in OVERLAYS {
        let folder = format!("config/overlays/{overlay}");
        let values =
            fs::read_to_string(orkestra_testkit::root().join(&folder).join("values.yaml")).unwrap();
        let wanted = objects(&values);
        let mut patches = Vec::new();
        for (key, object) in &base {
            let mut operations = Vec::new();
            if let Some(wanted) = wanted.get(key) {
                differences(object, wanted, "", &mut operations);
            } else {
                let gone = json!({
                    "$patch": "delete", "apiVersion": object["apiVersion"], "kind": object["kind"],
                    "metadata": { "name": key[2], "namespace": object["metadata"]["namespace"] },
                });
                patches.push(json!({ "patch": yaml(&gone) }));
            }
            if !operations.is_empty() {
                let target = json!({ "kind": key[0], "name": key[2], "namespace": object["metadata"]["namespace"] });
                patches.push(json!({ "target": target, "patch": yaml(&json!(operations)) }));
            }
        }
        let mut added = String::new();
        for (_, object) in wanted.iter().filter(|(key, _)| !base.contains_key(*key)) {
            let _ = write!(added, "---\n{}", yaml(object));
        }
        let mut content = json!({ "resources": ["../../base", "../../../crds"] });
        if !added.is_empty() {
            assert_document(&format!("{folder}/added.yaml"), &format!("{HEADER}{added}"));
            content["resources"]
                .as_array_mut()
                .unwrap()
                .push("added.yaml".into());
        }
        if !patches.is_empty() {
            content["patches"] = patches.into();
        }
        assert_document(
            &format!("{folder}/kustomization.yaml"),
            &kustomization(&content),
        );
    }
}

fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(&without_nulls(value)).unwrap()
}

/// Returns the value without keys that are null, such as the namespace of a cluster-scoped object.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect(),
        Value::Array(list) => list.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

fn kustomization(content: &Value) -> String {
    let mut whole =
        json!({ "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization" });
    whole
        .as_object_mut()
        .unwrap()
        .extend(content.as_object().unwrap().clone());
    format!("{HEADER}{}", yaml(&whole))
}

/// Adds the operations of a JSON patch that change `from` to `to`. Lists are replaced as a whole.
fn differences(from: &Value, to: &Value, path: &str, operations: &mut Vec<Value>) {
    let (Value::Object(before), Value::Object(after)) = (from, to) else {
        if from != to {
            operations.push(json!({ "op": "replace", "path": path, "value": to }));
        }
        return;
    };
    let below = |key: &str| format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
    for (key, value) in before {
        match after.get(key) {
            Some(other) => differences(value, other, &below(key), operations),
            None => operations.push(json!({ "op": "remove", "path": below(key) })),
        }
    }
    for (key, value) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
        operations.push(json!({ "op": "add", "path": below(key), "value": value }));
    }
}
