//! Objects and Events that lead to a pass: what is kept of them, what happened to one, and whose it is.
//!
//! ```text
//!  object ── Seen ──► before, after ── happened ──► does `on` count it? ── lead ──► custom resources
//! ```

use jiff::Timestamp;

use super::record::{Identity, Malformed, Uid, controller, owner_label};
use crate::{
    plan::{
        GroupKind, Leaf, ObjectKey, ResourceType,
        observe::{Changes, KeyPlan, LABEL_SERVICE},
    },
    template::{Budget, Data},
    value::{Key, Map, Node, Path, Sieve, hash, project},
};

/// What is kept of an object that leads to a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Who it is.
    pub id: Identity,
    /// Tells its content from another: all but its resourceVersion and who wrote what.
    pub digest: u128,
    /// What must be known of it. Its kind and version are not in it.
    pub view: Node,
}

/// Custom resources that an object leads to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lead {
    /// That of this uid.
    Uid(Uid),
    /// That of this name, in this namespace; without one in any, or in none.
    Name(Option<Key>, Key),
    /// The one that is this object, or that owns it.
    About(GroupKind, ObjectKey),
}

/// Why it cannot be told where an object leads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct Astray {
    /// The field in the Katalog.
    pub path: Box<str>,
    /// What is wrong.
    pub message: String,
}

impl Seen {
    /// Records `object`, keeping the parts of it that lie under `paths`.
    ///
    /// # Errors
    /// [`Malformed`] as [`Identity::read`] says.
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

    /// What [`Seen::read`] looks at: it tells every content from another.
    pub fn looks_at() -> Sieve {
        Sieve::whole()
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.id.heap_bytes() + self.view.heap_bytes()
    }

    /// Whether anything but the resourceVersion differs.
    pub fn differs(&self, before: &Self) -> bool {
        let Self { id, digest, view } = self;
        id.uid != before.id.uid || *digest != before.digest || *view != before.view
    }
}

/// The object without what changes without a change, and without what lists leave out.
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

/// What happened to an object. Another one of its name means that the first is gone.
pub fn happened(before: Option<&Seen>, after: Option<&Seen>) -> Changes {
    let is_another = |before: &Seen, after: &Seen| before.id.uid != after.id.uid;
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

/// Where an object of that kind leads; nowhere where it names none. `namespaced` is whether the custom resources are in
/// namespaces.
///
/// # Errors
/// [`Astray`] where a template fails.
pub fn lead(
    key: &KeyPlan,
    kind: &ResourceType,
    seen: &Seen,
    namespaced: bool,
    now: Timestamp,
) -> Result<Option<Lead>, Astray> {
    let own = || seen.id.key.namespace.clone();
    let (namespace, name) = match key {
        KeyPlan::About => return Ok(about(&seen.view)),
        KeyPlan::Owner => {
            let owner = controller(&seen.view).or_else(|| owner_label(&seen.view));
            return Ok(owner.map(|uid| Lead::Uid(uid.into())));
        }
        KeyPlan::Service => return Ok(service(seen)),
        KeyPlan::Label(label) => {
            let labels = seen
                .view
                .get("metadata")
                .and_then(|meta| meta.get("labels"));
            let name = labels.and_then(|labels| labels.get(label));
            let name = name.and_then(Node::as_str).unwrap_or_default();
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

/// The Service that an `EndpointSlice` is of: it belongs to the owner of that.
fn service(seen: &Seen) -> Option<Lead> {
    let labels = seen.view.get("metadata")?.get("labels")?;
    let key = ObjectKey {
        namespace: seen.id.key.namespace.clone(),
        name: labels.get(LABEL_SERVICE)?.as_str()?.into(),
    };
    Some(Lead::About(GroupKind::parse("Service"), key))
}

/// What was kept of an object of that kind, with its kind and version.
pub fn with_kind(view: &Node, kind: &ResourceType) -> Node {
    let mut whole = match view {
        Node::Map(fields) => fields.clone(),
        _ => Map::default(),
    };
    whole.insert(Key::from("apiVersion"), Node::from(kind.api_version()));
    whole.insert(Key::from("kind"), Node::from(&*kind.kind));
    Node::Map(whole)
}

/// The uid of what an Event is about.
pub fn about_uid(event: &Node) -> Option<&str> {
    let uid = event.get("regarding")?.get("uid")?.as_str();
    uid.filter(|uid| !uid.is_empty())
}

/// What an Event is about.
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

fn text(leaf: &Leaf, data: &Data<'_>) -> Result<String, Astray> {
    let astray = |message: String| Astray {
        path: leaf.path.clone(),
        message,
    };
    let value = leaf.template.eval(data, &mut Budget::default());
    let value = value.map_err(|error| astray(error.to_string()))?;
    let value = leaf.coerce.apply(value.into_owned());
    let value =
        value.map_err(|_| astray(format!("`{}` must give text", leaf.template.source())))?;
    Ok(value.map_or_else(String::new, |node| node.to_text().trim().to_owned()))
}
