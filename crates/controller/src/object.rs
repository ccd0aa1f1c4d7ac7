//! The stored form of a Katalog's object.
//!
//! ```text
//!  object ──► metadata and status, as they are used
//!        └──► document: its declarations as text, and the fields needed in every iteration
//! ```
//!
//! A document is parsed when it changes and rarely otherwise; as a tree it takes ten times the memory of its text.

use std::{collections::BTreeSet, sync::Arc};

use kube::api::{DynamicObject, ObjectMeta, TypeMeta};
use orkestra_compiler::compilation::kinds_named;
use orkestra_engine::reconcile::requested::Requested;
use orkestra_language::api::{KatalogStatus, names};
use orkestra_object::{
    decode::Version,
    value::{Fault, Node},
};
use orkestra_plan::{Coerce, Declaring, GroupKind, KatalogRef};
use serde_json::{Value, json};

use super::{directory::KatalogInfo, watched::WatchedContent};

/// The annotation in which `kubectl apply` keeps a copy of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How many accepted revisions are kept before the newest one, if its spec does not say.
const KEPT: usize = 5;

/// A state of a Katalog's object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KatalogObject {
    /// Without managed fields and annotations.
    pub(crate) metadata: ObjectMeta,
    /// The default if it has none, or none that is readable.
    pub(crate) status: KatalogStatus,
    pub(crate) document: Arc<Document>,
    /// The annotations that request a pass.
    pub(crate) requested: Option<Requested>,
    /// Whether its annotation releases it when it is deleted, even if some kinds could not be released.
    pub(crate) is_release_requested: bool,
    /// The kind that it declares operators as.
    pub(crate) kind: Declaring,
    /// The digests of sources that its annotation approves.
    pub(crate) approved: BTreeSet<String>,
    /// The field manager that last wrote its spec.
    pub(crate) author: Option<String>,
    /// How many earlier revisions are kept.
    pub(crate) kept: usize,
    /// Whether it is suspended, by its spec or by its annotation.
    pub(crate) suspended: bool,
    /// Whether the API server was restored to an older state: earlier states no longer count.
    pub(crate) rewound: bool,
}

/// The declarations of a Katalog: everything but its status, and of its metadata only what a user wrote.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Document {
    text: Box<str>,
    /// Its descriptive metadata.
    pub(crate) about: KatalogInfo,
    /// The kinds that it names: API types, and custom children.
    pub(crate) kinds: BTreeSet<GroupKind>,
    /// Whether its custom resources are deleted with it.
    pub(crate) deletes: bool,
    /// Its unreadable parts, which are not in the text.
    pub(crate) unread: Option<Box<str>>,
}

impl KatalogObject {
    pub(crate) fn new(object: DynamicObject) -> Self {
        let DynamicObject {
            types,
            mut metadata,
            mut data,
        } = object;
        let annotations = metadata.annotations.as_ref();
        let is_annotated = |name: &str| {
            let value = annotations.and_then(|all| all.get(name));
            value.is_some_and(|value| value == "true")
        };
        let is_release_requested = is_annotated(names::ANNOTATION_RELEASE);
        let suspended = is_annotated(names::ANNOTATION_SUSPEND)
            || data.pointer("/spec/suspend") == Some(&Value::Bool(true));
        let kept = kept(data.pointer("/spec/revisionHistoryLimit"));
        let author = author(&metadata);
        let faults = data
            .as_object_mut()
            .and_then(|data| data.remove(Fault::MARK));
        let faults = faults.map(|faults| Fault::read(&Node::from(&faults)));
        let unread = Fault::first_beside_managed_fields(faults.unwrap_or_default());
        let status = data.get_mut("status").map(Value::take).unwrap_or_default();
        let annotation = |name: &str| Some(metadata.annotations.as_ref()?.get(name)?.as_str());
        let requested = Requested::read(annotation);
        let approved = annotation(names::ANNOTATION_APPROVE).unwrap_or_default();
        let approved = approved
            .split([',', ' '])
            .filter(|digest| !digest.is_empty());
        let approved = approved.map(str::to_owned).collect();
        let is_komposer = |types: &TypeMeta| types.kind == Declaring::Komposer.kind();
        let kind = if types.as_ref().is_some_and(is_komposer) {
            Declaring::Komposer
        } else {
            Declaring::Katalog
        };
        make_document(&mut data, types, &mut metadata);
        Self {
            metadata,
            status: serde_json::from_value(status).unwrap_or_default(),
            document: Arc::new(Document {
                unread: unread.map(|fault| fault.to_string().into()),
                ..Document::new(&data)
            }),
            requested,
            is_release_requested,
            kind,
            approved,
            author,
            kept,
            suspended,
            rewound: false,
        }
    }

    pub(crate) fn reference(&self) -> KatalogRef {
        reference(&self.metadata).of(self.kind)
    }

    /// True if it is older than `other`.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        let version = |object: &Self| {
            let version = object.metadata.resource_version.as_deref();
            Version::from(version.unwrap_or_default())
        };
        version(other).is_newer_than(&version(self))
    }
}

/// Returns how many earlier revisions are kept. The language also reads a number that is written as a text.
fn kept(declared: Option<&Value>) -> usize {
    let declared = declared.and_then(|declared| Coerce::Int.apply(Node::from(declared)).ok()?);
    let number = declared.as_ref().and_then(Node::as_i64);
    number
        .and_then(|number| usize::try_from(number).ok())
        .unwrap_or(KEPT)
}

/// Returns the field manager that last wrote the spec.
fn author(metadata: &ObjectMeta) -> Option<String> {
    let entries = metadata.managed_fields.iter().flatten();
    let of_spec = entries.filter(|entry| {
        let fields = entry.fields_v1.as_ref();
        entry.subresource.is_none() && fields.is_some_and(|fields| fields.0.get("f:spec").is_some())
    });
    let last = of_spec.max_by_key(|entry| entry.time.as_ref().map(|time| time.0));
    last?.manager.clone()
}

/// Makes the data of an object the document as it was written: without its status, with type and metadata. Takes the
/// annotations.
fn make_document(data: &mut Value, types: Option<TypeMeta>, metadata: &mut ObjectMeta) {
    let Some(fields) = data.as_object_mut() else {
        return;
    };
    fields.remove("status");
    if let Some(types) = types {
        fields.insert("apiVersion".to_owned(), types.api_version.into());
        fields.insert("kind".to_owned(), types.kind.into());
    }
    metadata.managed_fields = None;
    let mut annotations = metadata.annotations.take().unwrap_or_default();
    annotations.remove(LAST_APPLIED);
    let written = json!({
        "namespace": metadata.namespace, "name": metadata.name,
        "labels": metadata.labels.clone().unwrap_or_default(), "annotations": annotations,
    });
    fields.insert("metadata".to_owned(), written);
}

impl WatchedContent for KatalogObject {
    fn new(object: DynamicObject) -> Self {
        Self::new(object)
    }
}

impl Document {
    fn new(tree: &Value) -> Self {
        let policy = tree.pointer("/spec/deletionPolicy");
        Self {
            text: tree.to_string().into(),
            about: KatalogInfo::read(tree),
            kinds: kinds_named(tree),
            deletes: policy.is_some_and(|policy| policy == "delete"),
            unread: None,
        }
    }

    /// Returns the whole document.
    pub(crate) fn tree(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// Returns the namespace and name of a Katalog's or a Motif's object.
pub(crate) fn reference(metadata: &ObjectMeta) -> KatalogRef {
    KatalogRef::new(
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_revisions_is_read_in_every_form_that_the_language_takes() {
        for (declared, expected) in [
            (json!(0), 0),
            (json!(9), 9),
            (json!("9"), 9),
            (json!(null), KEPT),
            (json!("many"), KEPT),
            (json!(-1), KEPT),
        ] {
            assert_eq!(kept(Some(&declared)), expected, "{declared}");
        }
        assert_eq!(kept(None), KEPT);
    }

    fn object(resource_version: &str, status: &Value) -> KatalogObject {
        let types =
            json!({ "group": "water.example", "version": "v1", "kind": "Pond", "plural": "ponds" });
        let object = json!({
            "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
            "metadata": {
                "name": "k", "namespace": "shop", "resourceVersion": resource_version, "labels": { "a": "b" },
                "annotations": { LAST_APPLIED: "{}", "note": "kept" },
                "managedFields": [{ "manager": "kubectl", "operation": "Apply", "fieldsV1": { "f:spec": {} } }],
            },
            "spec": { "deletionPolicy": "delete", "info": { "author": "me" }, "crds": { "pond": { "apiTypes": types } } },
            "status": status,
        });
        KatalogObject::new(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_document_is_what_a_person_wrote() {
        let object = object("7", &json!({ "ready": "1/1" }));
        let tree = object.document.tree();
        assert_eq!(tree["kind"], "Katalog");
        assert_eq!(
            tree["metadata"],
            json!({ "name": "k", "namespace": "shop", "labels": { "a": "b" }, "annotations": { "note": "kept" } })
        );
        assert_eq!(tree["status"], Value::Null);
        assert_eq!(object.status.ready, "1/1");
        assert!(object.document.deletes);
        assert_eq!(object.document.about.author, "me");
        let kinds: Vec<_> = object
            .document
            .kinds
            .iter()
            .map(GroupKind::to_string)
            .collect();
        assert_eq!(kinds, ["Pond.water.example"]);
    }

    #[test]
    fn a_write_that_declares_nothing_else_leaves_the_document_equal() {
        let (one, other) = (
            object("7", &json!({})),
            object("8", &json!({ "ready": "0/1" })),
        );
        assert_eq!(one.document, other.document);
        assert!(one.is_older_than(&other) && !other.is_older_than(&one));
        assert!(!one.is_older_than(&one));
    }

    #[test]
    fn a_status_that_cannot_be_read_is_none() {
        assert_eq!(
            object("7", &json!({ "ready": 3 })).status,
            KatalogStatus::default()
        );
    }
}
