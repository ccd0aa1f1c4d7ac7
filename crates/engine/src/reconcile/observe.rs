//! Objects and Events that trigger passes: their records, their changes, and the custom resources that they belong to.
//!
//! ```text
//!  object ── Seen ──► before, after ── happened ──► does `on` include it? ── lead ──► custom resources
//! ```

use jiff::Timestamp;

use super::{
    identity::{Identity, Uid},
    metadata::{Malformed, controller, owner_label},
};
use orkestra_object::value::{Key, Map, Node, Path, Projection, hash, project};
use orkestra_plan::{
    GroupKind, Leaf, ObjectKey, ResourceType,
    observe::{Changes, KeyPlan, LABEL_SERVICE},
};
use orkestra_template::{Data, EvalBudget};

/// The record of an object that triggers passes.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedRecord {
    /// Its identity.
    pub id: Identity,
    /// A hash of its content: everything except its resourceVersion and managed fields.
    pub digest: u128,
    /// The fields that are read. Its kind and version are not in it.
    pub view: Node,
}

/// The custom resources that an object leads to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lead {
    /// The one with this uid.
    Uid(Uid),
    /// The one with this name, in this namespace; without one in any namespace, or cluster-scoped.
    Name(Option<Key>, Key),
    /// The one that is this object, or that owns it.
    About(GroupKind, ObjectKey),
}

/// Why the lead of an object is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ObserveError {
    /// The field in the Katalog.
    pub path: Box<str>,
    /// The problem.
    pub message: String,
}

impl ObservedRecord {
    /// Records `object`, keeping the parts of it under `paths`.
    ///
    /// # Errors
    /// [`Malformed`] as for [`Identity::read`].
    pub fn read(object: &Node, paths: &[Path]) -> Result<Self, Malformed> {
        let id = Identity::read(object)?;
        let content = content(object);
        let digest = hash(&content);
        Ok(Self {
            id,
            // A hash is 32 hexadecimal digits.
            digest: u128::from_str_radix(&digest, 16).unwrap_or_default(),
            view: project(&content, paths),
        })
    }

    /// Returns the fields that [`ObservedRecord::read`] reads: all, to detect every change of content.
    pub fn projection() -> Projection {
        Projection::whole()
    }

    /// Returns the bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.id.heap_bytes() + self.view.heap_bytes()
    }

    /// True if anything except the resourceVersion differs.
    pub fn differs(&self, before: &Self) -> bool {
        let Self { id, digest, view } = self;
        id.uid != before.id.uid || *digest != before.digest || *view != before.view
    }
}

/// Returns the object without fields that change without a change of content, and without fields that lists omit.
fn content(object: &Node) -> Node {
    let mut content = object.clone();
    if let Node::Map(fields) = &mut content {
        fields.remove("apiVersion");
        fields.remove("kind");
        if let Some(Node::Map(metadata)) = fields.get_mut("metadata") {
            metadata.remove("resourceVersion");
            metadata.remove("managedFields");
        }
    }
    content
}

/// Returns what happened to an object. Another object of the same name means that the first was deleted.
pub fn happened(before: Option<&ObservedRecord>, after: Option<&ObservedRecord>) -> Changes {
    let is_another =
        |before: &ObservedRecord, after: &ObservedRecord| before.id.uid != after.id.uid;
    match (before, after) {
        (None, None) => Changes::default(),
        (None, Some(_)) => Changes {
            create: true,
            ..Changes::default()
        },
        (Some(_), None) => Changes {
            delete: true,
            ..Changes::default()
        },
        (Some(before), Some(after)) if is_another(before, after) => Changes {
            create: true,
            update: false,
            delete: true,
        },
        (Some(before), Some(after)) => Changes {
            update: before.digest != after.digest,
            ..Changes::default()
        },
    }
}

/// Returns where an object of that kind leads; none if it names no custom resource. `namespaced` is true if the custom
/// resources are namespaced.
///
/// # Errors
/// [`ObserveError`] if a template fails.
pub fn lead(
    key: &KeyPlan,
    kind: &ResourceType,
    seen: &ObservedRecord,
    namespaced: bool,
    now: Timestamp,
) -> Result<Option<Lead>, ObserveError> {
    let own = || seen.id.key.namespace.clone();
    let (namespace, name) = match key {
        KeyPlan::About => return Ok(about(&seen.view)),
        KeyPlan::Owner => {
            let owner = controller(&seen.view).or_else(|| owner_label(&seen.view));
            return Ok(owner.map(|uid| Lead::Uid(uid.into())));
        }
        KeyPlan::Service => return Ok(service(seen)),
        KeyPlan::Label(label) => {
            let name = seen.view.label(label).unwrap_or_default();
            (own(), name.to_owned())
        }
        KeyPlan::Name { name, namespace } => {
            let whole = with_kind(&seen.view, kind);
            let data = Data::of(&whole).at(now);
            let namespace = match namespace {
                Some(leaf) => Some(text(leaf, &data)?).filter(|text| !text.is_empty()),
                None => None,
            };
            (namespace.map(Key::from).or_else(own), text(name, &data)?)
        }
    };
    let namespace = namespace.filter(|_| namespaced);
    Ok((!name.is_empty()).then(|| Lead::Name(namespace, name.into())))
}

/// Returns the Service of an `EndpointSlice`: the slice belongs to the owner of the Service.
fn service(seen: &ObservedRecord) -> Option<Lead> {
    let key = ObjectKey {
        namespace: seen.id.key.namespace.clone(),
        name: seen.view.label(LABEL_SERVICE)?.into(),
    };
    Some(Lead::About(GroupKind::parse("Service"), key))
}

/// Returns the record of an object of that kind, with its kind and version.
pub fn with_kind(view: &Node, kind: &ResourceType) -> Node {
    let mut whole = match view {
        Node::Map(fields) => fields.clone(),
        _ => Map::default(),
    };
    whole.insert(Key::from("apiVersion"), Node::from(kind.api_version()));
    whole.insert(Key::from("kind"), Node::from(&*kind.kind));
    Node::Map(whole)
}

/// Returns the uid of the object that an Event is about.
pub fn about_uid(event: &Node) -> Option<&str> {
    let uid = event.get("regarding")?.get("uid")?.as_str();
    uid.filter(|uid| !uid.is_empty())
}

/// Returns the object that an Event is about.
fn about(event: &Node) -> Option<Lead> {
    let regarding = event.get("regarding")?;
    let text = |field: &str| regarding.get(field).and_then(Node::as_str);
    let group = text("apiVersion").and_then(|version| version.split_once('/'));
    let kind = GroupKind {
        group: Key::from(group.map_or("", |(group, _)| group)),
        kind: Key::from(text("kind")?),
    };
    let key = ObjectKey {
        namespace: text("namespace")
            .filter(|namespace| !namespace.is_empty())
            .map(Key::from),
        name: text("name")?.into(),
    };
    Some(Lead::About(kind, key))
}

fn text(leaf: &Leaf, data: &Data<'_>) -> Result<String, ObserveError> {
    let astray = |message: String| ObserveError {
        path: leaf.path.clone().into(),
        message,
    };
    let value = leaf.template.eval(data, &mut EvalBudget::default());
    let value = value.map_err(|error| astray(error.to_string()))?;
    let value = leaf.coerce.apply(value.into_owned());
    let value =
        value.map_err(|_| astray(format!("`{}` must return text", leaf.template.source())))?;
    Ok(value.map_or_else(String::new, |node| node.to_text().trim().to_owned()))
}
