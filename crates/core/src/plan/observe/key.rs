//! Finds the custom resource of an object or an Event.

use crate::{
    api::{names, observe::KeyFrom},
    diagnostics::Code,
    plan::{Coerce, Leaf},
    resources::scope::At,
    value::{Key, Path},
};

/// The label of an `EndpointSlice` that names its Service.
///
/// Source: Kubernetes, "`EndpointSlices`", ownership.
pub(crate) const LABEL_SERVICE: &str = "kubernetes.io/service-name";

/// How to find the custom resource of an object or an Event.
#[derive(Debug)]
pub enum KeyPlan {
    /// The owner of the object.
    Owner,
    /// The object that the Event is about, or its owner.
    About,
    /// The owner of the Service of an `EndpointSlice`.
    Service,
    /// The object's label with this key is its name.
    Label(Key),
    /// Templates over the object.
    Name {
        /// Its name.
        name: Leaf,
        /// Its namespace; `None` is the object's.
        namespace: Option<Leaf>,
    },
}

/// The input of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Object,
    Event,
}

impl KeyPlan {
    /// Returns the templates.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        let (name, namespace) = match self {
            Self::Owner | Self::About | Self::Service | Self::Label(_) => (None, None),
            Self::Name { name, namespace } => (Some(name), namespace.as_ref()),
        };
        name.into_iter().chain(namespace)
    }

    /// Returns the paths that must be kept of an object.
    pub(super) fn kept_paths(&self) -> Vec<Path> {
        match self {
            Self::Owner => vec![
                Path::of_fields(["metadata", "ownerReferences"]),
                Path::of_fields(["metadata", "labels", names::LABEL_OWNER_UID]),
            ],
            Self::About => vec![Path::of_fields(["regarding"])],
            Self::Service => vec![Path::of_fields(["metadata", "labels", LABEL_SERVICE])],
            Self::Label(key) => vec![Path::of_fields(["metadata", "labels", key])],
            Self::Name { .. } => {
                let leaves = self.leaves();
                leaves
                    .flat_map(|leaf| leaf.template.reads().iter().cloned())
                    .collect()
            }
        }
    }

    /// True if both find the same custom resource.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let source = |leaf: &Leaf| leaf.template.source().to_owned();
        match (self, other) {
            (Self::Owner, Self::Owner)
            | (Self::About, Self::About)
            | (Self::Service, Self::Service) => true,
            (Self::Label(one), Self::Label(other)) => one == other,
            (Self::Name { .. }, Self::Name { .. }) => {
                self.leaves().map(source).eq(other.leaves().map(source))
            }
            _ => false,
        }
    }
}

/// Compiles the key at `at`.
pub(super) fn compile(at: &At<'_>, declared: Option<&KeyFrom>, of: Of) -> Option<KeyPlan> {
    let Some(declared) = declared else {
        return Some(match of {
            Of::Object => KeyPlan::Owner,
            Of::Event => KeyPlan::About,
        });
    };
    let KeyFrom {
        label,
        name,
        namespace,
    } = declared;
    let label = label.as_deref().map(str::trim);
    let label = label.filter(|label| !label.is_empty());
    let name = name.as_ref().filter(|name| !name.trim().is_empty());
    if name.is_none() && namespace.is_some() {
        let hint = "say which custom resource it is with `name`, too";
        at.field("namespace").error_hint(
            Code::Exclusive,
            "`namespace` stands beside `name` only",
            hint,
        );
    }
    match (label, name) {
        (None, None) => {
            let message = "neither `label` nor `name` says which custom resource it is";
            let hint = "leave `keyFrom` out to follow owner references, or name a label: `label: example.org/owner`";
            at.error_hint(Code::Missing, message, hint);
            None
        }
        (Some(_), Some(_)) => {
            let hint = "leave out one of the two";
            at.error_hint(
                Code::Exclusive,
                "`label` and `name` exclude each other",
                hint,
            );
            None
        }
        (Some(label), None) => {
            if let Err(why) = names::check_label_key(label) {
                at.field("label")
                    .bad_name(label, why, names::check_label_key);
                return None;
            }
            Some(KeyPlan::Label(Key::from(label)))
        }
        (None, Some(name)) => {
            let leaf = |field: &str, text: &str| at.field(field).leaf(text, Coerce::OptionalText);
            let name = leaf("name", name);
            let namespace = namespace.as_ref().map(|text| leaf("namespace", text));
            Some(KeyPlan::Name {
                name: name?,
                namespace: match namespace {
                    Some(leaf) => Some(leaf?),
                    None => None,
                },
            })
        }
    }
}
