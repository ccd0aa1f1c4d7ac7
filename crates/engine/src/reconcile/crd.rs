//! The record of a `CustomResourceDefinition`, and its schema at a path.
//!
//! A CRD may be a megabyte; its record holds names, flags, and from each version's schema the part under `status` without
//! descriptions, defaults and rules.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    crd_status::{CrdStatus, StatusShape, status_schema},
    identity::Identity,
    metadata::{Malformed, in_metadata},
};
use orkestra_language::schema::PRESERVE;
use orkestra_object::value::{Key, Map, Node, Path, Projection};
use orkestra_plan::{GroupKind, ObjectKey, ResourceType, built_in, definitions::scale_path};

/// The record of a CRD.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the definition"
)]
#[derive(Clone, Debug, PartialEq)]
pub struct CrdRecord {
    /// Its identity; its name is `<plural>.<group>`.
    pub id: Identity,
    /// API group of its kind.
    pub group: Key,
    /// Its kind.
    pub kind: Key,
    /// REST plural.
    pub plural: Key,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
    /// Its labels.
    pub labels: BTreeMap<Box<str>, Box<str>>,
    /// Its versions, as listed.
    pub versions: Box<[ObservedCrdVersion]>,
    /// Condition `Established`: the API server serves it.
    pub established: bool,
    /// Condition `NamesAccepted`: no other CRD has its names.
    pub names_accepted: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// One version of a CRD.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedCrdVersion {
    /// `v1`.
    pub name: Key,
    /// Whether the API server serves it.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// Whether it has the status subresource.
    pub has_status: bool,
    /// The path that the scale subresource writes; none without that subresource.
    pub scale: Option<Key>,
    /// The schema of `status`, as far as [`StatusShape`] reads it. None if the API server drops `status` completely.
    pub status_schema: Option<Arc<Node>>,
}

impl CrdRecord {
    /// Records `object`, a `CustomResourceDefinition` of `apiextensions.k8s.io/v1`.
    ///
    /// # Errors
    /// [`Malformed`] if name, uid, resourceVersion, or the names of the kind are absent.
    pub fn read(object: &Node) -> Result<Self, Malformed> {
        let id = Identity::read(object)?;
        let at = |fields: &[&str]| {
            fields
                .iter()
                .try_fold(object, |node, field| node.get(field))
        };
        let text = |fields: &[&str], name| {
            at(fields)
                .and_then(Node::as_str)
                .map(Key::from)
                .ok_or(Malformed(name))
        };
        let versions = at(&["spec", "versions"])
            .and_then(Node::as_list)
            .unwrap_or_default();
        let labels = at(&["metadata", "labels"]).and_then(Node::as_map);
        let labels = labels.into_iter().flat_map(Map::iter);
        let labels =
            labels.filter_map(|(key, value)| Some((Box::from(&**key), value.as_str()?.into())));
        let condition = |kind: &str| {
            let conditions = at(&["status", "conditions"])
                .and_then(Node::as_list)
                .unwrap_or_default();
            conditions
                .iter()
                .any(|condition| is(condition, "type", kind) && is(condition, "status", "True"))
        };
        Ok(Self {
            id,
            group: text(&["spec", "group"], "spec.group")?,
            kind: text(&["spec", "names", "kind"], "spec.names.kind")?,
            plural: text(&["spec", "names", "plural"], "spec.names.plural")?,
            namespaced: at(&["spec", "scope"]).and_then(Node::as_str) == Some("Namespaced"),
            labels: labels.collect(),
            versions: versions
                .iter()
                .filter_map(ObservedCrdVersion::read)
                .collect(),
            established: condition("Established"),
            names_accepted: condition("NamesAccepted"),
            deleting: at(&["metadata", "deletionTimestamp"]).is_some(),
        })
    }

    /// What stands in for the CRD of a built-in kind, which has none: it is always served, and no status of it is ours to write.
    pub fn built_in(resource: &ResourceType) -> Option<Self> {
        let (plural, namespaced) = built_in(&resource.group_kind())?;
        let name = format!("{plural}.{}", resource.group);
        let version = ObservedCrdVersion {
            name: resource.version.clone(),
            served: true,
            storage: true,
            has_status: false,
            scale: None,
            status_schema: None,
        };
        Some(Self {
            id: Identity {
                key: ObjectKey {
                    namespace: None,
                    name: Key::from(name),
                },
                uid: "".into(),
                resource_version: "".into(),
            },
            group: resource.group.clone(),
            kind: resource.kind.clone(),
            plural: Key::from(plural),
            namespaced,
            labels: BTreeMap::new(),
            versions: [version].into(),
            established: true,
            names_accepted: true,
            deleting: false,
        })
    }

    /// What [`CrdRecord::read`] looks at: of each version's schema no more than its part under `status`.
    pub fn projection() -> Projection {
        let path = |fields: &[&str]| Path::of_fields(fields.iter().copied());
        let identity = Identity::FIELDS.map(|field| in_metadata(&[field]));
        let own: [&[&str]; 7] = [
            &["metadata", "labels"],
            &["metadata", "deletionTimestamp"],
            &["spec", "group"],
            &["spec", "names", "kind"],
            &["spec", "names", "plural"],
            &["spec", "scope"],
            &["status", "conditions"],
        ];
        let root = ["schema", "openAPIV3Schema"];
        let of_each: [&[&str]; 6] = [
            &["name"],
            &["served"],
            &["storage"],
            &["subresources"],
            &[root[0], root[1], "properties", "status"],
            &[root[0], root[1], PRESERVE],
        ];
        let own = own.map(path);
        Projection::new(identity.iter().chain(&own))
            .with_each(&path(&["spec", "versions"]), &of_each.map(path))
    }

    /// Returns the bytes on the heap, without shared data.
    pub fn heap_bytes(&self) -> usize {
        let labels = self.labels.iter();
        let labels = labels.map(|(key, value)| 2 * size_of::<Box<str>>() + key.len() + value.len());
        let versions = self.versions.iter().map(|version| {
            let schema = version.status_schema.as_ref();
            size_of::<ObservedCrdVersion>() + schema.map_or(0, |schema| schema.heap_bytes())
        });
        self.id.heap_bytes() + labels.sum::<usize>() + versions.sum::<usize>()
    }

    /// Returns its kind without a version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind {
            group: self.group.clone(),
            kind: self.kind.clone(),
        }
    }

    /// Returns the version of that name.
    pub fn version(&self, name: &str) -> Option<&ObservedCrdVersion> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    /// Returns the facts for a pass over objects of version `name`; none if the CRD has no such version.
    pub fn status_of(&self, name: &str) -> Option<CrdStatus> {
        let version = self.version(name)?;
        Some(CrdStatus {
            namespaced: self.namespaced,
            has_status: version.has_status,
            status: StatusShape::new(version.status_schema.clone()),
        })
    }

    /// True if the API server serves version `name` now.
    pub fn serves(&self, name: &str) -> bool {
        self.established
            && self.names_accepted
            && self.version(name).is_some_and(|version| version.served)
    }

    /// True if anything except the resourceVersion differs.
    pub fn differs(&self, before: &Self) -> bool {
        let Self {
            id,
            group,
            kind,
            plural,
            namespaced,
            labels,
            versions,
            established,
            names_accepted,
            deleting,
        } = self;
        id.uid != before.id.uid
            || *group != before.group
            || *kind != before.kind
            || *plural != before.plural
            || *namespaced != before.namespaced
            || *labels != before.labels
            || *versions != before.versions
            || *established != before.established
            || *names_accepted != before.names_accepted
            || *deleting != before.deleting
    }
}

impl ObservedCrdVersion {
    fn read(version: &Node) -> Option<Self> {
        let flag = |field| {
            version
                .get(field)
                .and_then(Node::as_bool)
                .unwrap_or_default()
        };
        let schema = version
            .get("schema")
            .and_then(|schema| schema.get("openAPIV3Schema"));
        Some(Self {
            name: version.get("name")?.as_str()?.into(),
            served: flag("served"),
            storage: flag("storage"),
            has_status: version
                .get("subresources")
                .and_then(|all| all.get("status"))
                .is_some(),
            scale: scale_path(version),
            status_schema: schema.and_then(status_schema),
        })
    }
}

fn is(node: &Node, field: &str, value: &str) -> bool {
    node.get(field).and_then(Node::as_str) == Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRD: &str = r#"{
        "metadata": {"name": "websites.shop.example", "uid": "u1", "resourceVersion": "7"},
        "spec": {
            "group": "shop.example", "scope": "Namespaced",
            "names": {"kind": "Website", "plural": "websites"},
            "versions": [
                {"name": "v2", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "description": "tedious"},
                        "status": {"type": "object", "description": "tedious", "properties": {
                            "ready": {"type": "integer", "minimum": 0},
                            "url": {"type": "string", "pattern": "^h"}, "note": {"type": "string"},
                            "scheme": {"type": "string", "enum": ["http", "https"]}, "at": {"type": "string", "format": "date-time"},
                            "port": {"x-kubernetes-int-or-string": true},
                            "labels": {"type": "object", "additionalProperties": {"type": "boolean"}},
                            "steps": {"type": "array", "items": {"type": "object", "properties": {"took": {"type": "number"}}}},
                            "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                            "any": {"type": "object", "additionalProperties": true}
                        }}
                    }
                }}},
                {"name": "v1", "served": false, "storage": false, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
                {"name": "v0", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ]
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}]}
    }"#;

    fn crd() -> CrdRecord {
        CrdRecord::read(&serde_json::from_str(CRD).unwrap()).unwrap()
    }

    #[test]
    fn a_crd_is_known_by_its_names_versions_and_conditions() {
        let crd = crd();
        assert_eq!(crd.group_kind().to_string(), "Website.shop.example");
        assert_eq!((&*crd.plural, crd.namespaced), ("websites", true));
        assert!(crd.serves("v2") && !crd.serves("v1") && !crd.serves("v9"));
        assert!(
            crd.status_of("v2").unwrap().has_status && !crd.status_of("v1").unwrap().has_status
        );
    }

    #[test]
    fn a_version_that_keeps_unknown_fields_keeps_any_status_and_one_without_drops_it() {
        let path = Path::parse("any.thing").unwrap();
        assert!(crd().status_of("v1").unwrap().status.holds(&path));
        assert!(!crd().status_of("v0").unwrap().status.holds(&path));
    }

    #[test]
    fn the_record_holds_neither_descriptions_nor_the_rules_for_texts_but_whether_they_may_be_empty()
    {
        let text = format!("{:?}", crd());
        for left in ["tedious", "^h", "https", "date-time"] {
            assert!(!text.contains(left), "{left}: {text}");
        }
        let crd_status = crd().status_of("v2").unwrap();
        for (field, takes) in [
            ("url", false),
            ("scheme", false),
            ("at", false),
            ("note", true),
        ] {
            let path = Path::parse(field).unwrap();
            assert_eq!(crd_status.status.takes_empty_text(&path), takes, "{field}");
        }
    }

    #[test]
    fn only_the_resource_version_may_change_without_a_difference() {
        let (before, mut after) = (crd(), crd());
        after.id.resource_version = "8".into();
        assert!(!after.differs(&before));
        after.established = false;
        assert!(after.differs(&before));
    }
}
