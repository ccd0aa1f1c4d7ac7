//! The measured objects: kinds of custom resources as in `crd.yaml`, and Katalogs as in `katalog.yaml`.

use std::ops::Range;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::api::{self, Write};

const CRD: &str = include_str!("../crd.yaml");
const KATALOG: &str = include_str!("../katalog.yaml");
/// The API group and version of the kinds.
const GROUP: &str = "bench.orkestra.io/v1";
/// The namespace of Katalogs and of the custom resources that `ork` handles.
pub(crate) const NAMESPACE: &str = "bench";
/// The children of a custom resource, in the order in which a part of them is chosen.
pub(crate) const BLOCKS: [&str; 4] = ["configMaps", "deployments", "services", "secrets"];

/// A kind with the schema of `crd.yaml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    kind: String,
}

impl Kind {
    /// Returns the kind with this number.
    pub(crate) fn numbered(number: usize) -> Self {
        Self {
            kind: format!("Shop{number:04}"),
        }
    }

    /// Returns `count` kinds, numbered from 0.
    pub(crate) fn some(count: usize) -> Vec<Self> {
        (0..count).map(Self::numbered).collect()
    }

    /// Returns a kind that no Katalog declares. The harness itself does the work for its custom resources.
    pub(crate) fn without_operator() -> Self {
        Self {
            kind: "Plain".to_owned(),
        }
    }

    /// Returns its plural in small letters.
    pub(crate) fn plural(&self) -> String {
        format!("{}s", self.kind.to_lowercase())
    }

    /// Returns its `CustomResourceDefinition`.
    pub(crate) fn definition(&self) -> Result<Value> {
        let mut crd: Value = serde_saphyr::from_str(CRD)?;
        let plural = self.plural();
        crd["metadata"]["name"] = json!(format!("{plural}.bench.orkestra.io"));
        crd["spec"]["names"] = json!({
            "kind": self.kind,
            "listKind": format!("{}List", self.kind),
            "plural": plural,
            "singular": self.kind.to_lowercase(),
        });
        Ok(crd)
    }

    /// Returns the path of its custom resources in `namespace`.
    pub(crate) fn path(&self, namespace: &str) -> String {
        format!("/apis/{GROUP}/namespaces/{namespace}/{}", self.plural())
    }

    /// Returns the path of its custom resources in all namespaces.
    pub(crate) fn path_everywhere(&self) -> String {
        format!("/apis/{GROUP}/{}", self.plural())
    }

    /// Returns a custom resource.
    pub(crate) fn resource(&self, namespace: &str, name: &str) -> Value {
        json!({
            "apiVersion": GROUP,
            "kind": self.kind,
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "image": "registry.example/shop:1", "message": "open", "replicas": 2, "port": 8080 },
        })
    }

    /// Returns POSTs of the custom resources with these numbers.
    pub(crate) fn creations(&self, namespace: &str, numbers: Range<usize>) -> Vec<Write> {
        numbers
            .map(|index| {
                Write::create(
                    &self.path(namespace),
                    &self.resource(namespace, &resource_name(index)),
                )
            })
            .collect()
    }
}

/// Returns the name of the custom resource with this number. All names have the same length.
pub(crate) fn resource_name(number: usize) -> String {
    format!("s{number:05}")
}

/// The differences of a Katalog from `katalog.yaml`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tuning {
    /// The number of workers of each operator; by default that of `ork`.
    pub(crate) workers: Option<u32>,
    /// The resync period; by default that of `ork`.
    pub(crate) resync: Option<&'static str>,
    /// The number of [`BLOCKS`] to keep; by default all.
    pub(crate) children: Option<usize>,
    /// The label `edition` of the `ConfigMap`; by default that of the file.
    pub(crate) edition: Option<String>,
}

/// Returns a Katalog with one operator for each of `kinds`.
pub(crate) fn katalog(name: &str, kinds: &[Kind], tuning: &Tuning) -> Result<Value> {
    let mut katalog: Value = serde_saphyr::from_str(KATALOG)?;
    katalog["metadata"]["name"] = json!(name);
    let mut pattern = katalog["spec"]["crds"]["shop"].take();
    let operator = pattern
        .get_mut("operatorBox")
        .context("katalog.yaml without an operatorBox")?;
    if let Some(workers) = tuning.workers {
        operator["reconciler"]["workers"] = json!(workers);
    }
    if let Some(resync) = tuning.resync {
        operator["reconciler"]["resync"] = json!(resync);
    }
    let blocks = operator["onReconcile"]
        .as_object_mut()
        .context("katalog.yaml without children")?;
    let kept = &BLOCKS[..tuning.children.unwrap_or(BLOCKS.len()).min(BLOCKS.len())];
    blocks.retain(|block, _| kept.contains(&block.as_str()));
    if let Some(edition) = &tuning.edition {
        blocks["configMaps"][0]["labels"]["edition"] = json!(edition);
    }
    let has_deployment = blocks.contains_key("deployments");
    if let Some(fields) = operator["status"]["fields"].as_array_mut() {
        fields.retain(|field| has_deployment || field["path"] != "readyReplicas");
    }
    let entries = kinds.iter().map(|kind| {
        let mut entry = pattern.clone();
        entry["apiTypes"]["kind"] = json!(kind.kind);
        entry["apiTypes"]["plural"] = json!(kind.plural());
        (kind.kind.to_lowercase(), entry)
    });
    katalog["spec"]["crds"] = Value::Object(entries.collect());
    Ok(katalog)
}

/// Returns Katalogs for many kinds, with `a_katalog` operators each.
pub(crate) fn katalogs(kinds: &[Kind], a_katalog: usize, tuning: &Tuning) -> Result<Vec<Value>> {
    kinds
        .chunks(a_katalog)
        .enumerate()
        .map(|(index, kinds)| katalog(&format!("shops-{index:03}"), kinds, tuning))
        .collect()
}

/// Returns true if `ork` has finished all work on the custom resource: the status is about the current generation, and the
/// resource is ready or waits only for the Deployment controller, which does not run here.
pub(crate) fn is_done(object: &Value) -> bool {
    let conditions = object
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| {
        one["type"] == "Ready"
            && one["observedGeneration"] == object["metadata"]["generation"]
            && (one["status"] == "True" || one["reason"] == "ChildrenNotReady")
    })
}

/// A child as `ork` creates it, for any custom resource.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    collection: &'static str,
    object: String,
}

/// The prefix of Orkestra's labels and annotations, and another domain of the same length.
const DOMAIN: &str = "orkestra.orkspace.io/";
const OTHER_DOMAIN: &str = "unmanaged.example.io/";
/// The name in a rendered child, which is replaced.
const RENDERED: &str = "s00000";

impl Child {
    /// Converts an object of `ork render` for the custom resource `s00000`.
    pub(crate) fn of(object: &Value) -> Result<Self> {
        let kind = api::text(object, "/kind");
        let collection = match kind {
            "ConfigMap" => "configmaps",
            "Deployment" => "deployments",
            "Service" => "services",
            "Secret" => "secrets",
            other => anyhow::bail!("katalog.yaml creates a {other:?}: not supported here"),
        };
        let mut object = object.clone();
        // `ork` adds this annotation when it applies the child. Any text of the same length will do.
        object["metadata"]["annotations"][format!("{DOMAIN}applied")] = json!("0".repeat(32));
        Ok(Self {
            collection,
            // The harness' objects must not be in the caches of `ork`, which selects objects by its own labels.
            object: object.to_string().replace(DOMAIN, OTHER_DOMAIN),
        })
    }

    /// Returns the plural of its kind.
    pub(crate) fn collection(&self) -> &'static str {
        self.collection
    }

    /// Returns the child of the custom resource `name` in `namespace`.
    pub(crate) fn object(&self, namespace: &str, name: &str) -> Result<Value> {
        let mut object: Value = serde_json::from_str(&self.object.replace(RENDERED, name))?;
        object["metadata"]["namespace"] = json!(namespace);
        Ok(object)
    }

    /// Returns the path of the children.
    pub(crate) fn path(&self, namespace: &str) -> String {
        children_path(self.collection, namespace)
    }

    /// Returns the server-side apply of the child.
    pub(crate) fn apply(&self, namespace: &str, name: &str) -> Result<Write> {
        let path = format!("{}/{name}", self.path(namespace));
        Ok(Write::apply(&path, &self.object(namespace, name)?))
    }

    /// Returns the POST of the child.
    pub(crate) fn create(&self, namespace: &str, name: &str) -> Result<Write> {
        Ok(Write::create(
            &self.path(namespace),
            &self.object(namespace, name)?,
        ))
    }
}

/// Returns the path of the objects of this plural.
pub(crate) fn children_path(collection: &str, namespace: &str) -> String {
    let api = match collection {
        "deployments" => "/apis/apps/v1",
        _ => "/api/v1",
    };
    format!("{api}/namespaces/{namespace}/{collection}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_katalog_has_an_operator_for_each_kind_and_only_the_children_asked_for() {
        let tuning = Tuning {
            workers: Some(7),
            resync: Some("1s"),
            children: Some(1),
            edition: Some("second".to_owned()),
        };
        let katalog = katalog("two", &Kind::some(2), &tuning).unwrap();
        let entries = katalog["spec"]["crds"].as_object().unwrap();
        assert_eq!(entries.keys().collect::<Vec<_>>(), ["shop0000", "shop0001"]);
        let entry = &entries["shop0001"];
        assert_eq!(entry["apiTypes"]["kind"], "Shop0001");
        assert_eq!(entry["apiTypes"]["plural"], "shop0001s");
        let operator = &entry["operatorBox"];
        assert_eq!(
            operator["reconciler"],
            json!({ "workers": 7, "resync": "1s" })
        );
        let blocks = operator["onReconcile"].as_object().unwrap();
        assert_eq!(blocks.keys().collect::<Vec<_>>(), ["configMaps"]);
        assert_eq!(blocks["configMaps"][0]["labels"]["edition"], "second");
        assert_eq!(operator["status"]["fields"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_resource_is_done_when_its_status_is_about_what_it_says_now() {
        let shop = |generation: u32, status: &str, reason: &str| {
            let ready = json!({ "type": "Ready", "status": status, "reason": reason, "observedGeneration": 2 });
            json!({ "metadata": { "generation": generation }, "status": { "conditions": [ready] } })
        };
        assert!(is_done(&shop(2, "True", "ReconcileSucceeded")));
        assert!(is_done(&shop(2, "False", "ChildrenNotReady")));
        assert!(!is_done(&shop(2, "False", "Forbidden")));
        assert!(!is_done(&shop(3, "True", "ReconcileSucceeded")));
        assert!(!is_done(&json!({ "metadata": { "generation": 1 } })));
    }
}
