//! The list of the objects of an installation.

use orkestra_language::api::names;
use orkestra_object::value::{Key, Node};
use orkestra_plan::ObjectKey;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{ManifestObject, RELEASE, objects::text};

/// Name of the `ConfigMap` with the inventory, in the namespace of the installation.
pub const INVENTORY: &str = "orkestra-inventory";
const KEY: &str = "objects.json";

/// One object of the inventory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct InventoryObject {
    api_version: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    name: String,
}

/// The objects of an installation, in the order in which they are applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory(Vec<InventoryObject>);

impl Inventory {
    /// Returns the inventory of these objects.
    pub fn of(objects: &[ManifestObject]) -> Self {
        let entry = |object: &ManifestObject| InventoryObject {
            api_version: api_version(object),
            kind: object.kind.to_string(),
            namespace: object.key.namespace.as_ref().map(Key::to_string),
            name: object.key.name.to_string(),
        };
        Self(objects.iter().map(entry).collect())
    }

    /// Reads the inventory of a `ConfigMap`; `None` if it is unreadable.
    pub fn read(config_map: &Node) -> Option<Self> {
        serde_json::from_str(text(config_map, &["data", KEY])?)
            .ok()
            .map(Self)
    }

    /// Returns the objects, without their contents.
    pub fn objects(&self) -> Vec<ManifestObject> {
        let object = |entry: &InventoryObject| {
            let (group, version) = entry
                .api_version
                .split_once('/')
                .unwrap_or(("", &entry.api_version));
            ManifestObject {
                group: group.into(),
                version: version.into(),
                kind: entry.kind.as_str().into(),
                key: ObjectKey {
                    namespace: entry.namespace.as_deref().map(Key::from),
                    name: entry.name.as_str().into(),
                },
                body: Node::Null,
            }
        };
        self.0.iter().map(object).collect()
    }

    /// Adds the entries of another inventory that are not in this one, at the end.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.0.extend(other.without(self).0);
        all
    }

    /// Returns the entries that another inventory lacks. Versions of a kind count as one.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let about = |entry: &InventoryObject| {
            let group = entry
                .api_version
                .split_once('/')
                .map_or("", |(group, _)| group);
            (
                group.to_owned(),
                entry.kind.clone(),
                entry.namespace.clone(),
                entry.name.clone(),
            )
        };
        let others: Vec<_> = other.0.iter().map(about).collect();
        let rest = self
            .0
            .iter()
            .filter(|entry| !others.contains(&about(entry)));
        Self(rest.cloned().collect())
    }

    /// Returns the `ConfigMap`.
    pub fn object(&self, namespace: &str) -> ManifestObject {
        let lines: Vec<String> = self
            .0
            .iter()
            .filter_map(|entry| serde_json::to_string(entry).ok())
            .collect();
        let body = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": INVENTORY,
                "namespace": namespace,
                "labels": {
                    "app.kubernetes.io/name": RELEASE,
                    "app.kubernetes.io/instance": RELEASE,
                    "app.kubernetes.io/part-of": RELEASE,
                },
                "annotations": {
                    "kubernetes.io/description": "The objects of this installation of Orkestra, for `ork install` and `ork uninstall`.",
                    names::ANNOTATION_VERSION: orkestra_ground::VERSION,
                },
            },
            "data": { KEY: format!("[\n{}\n]\n", lines.join(",\n")) },
        });
        ManifestObject {
            group: "".into(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            key: ObjectKey {
                namespace: Some(namespace.into()),
                name: INVENTORY.into(),
            },
            body: Node::from(&body),
        }
    }
}

fn api_version(object: &ManifestObject) -> String {
    if object.group.is_empty() {
        object.version.to_string()
    } else {
        format!("{}/{}", object.group, object.version)
    }
}
