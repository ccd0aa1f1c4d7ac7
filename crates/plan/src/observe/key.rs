//! Finds the custom resource of an object or an Event.

use crate::Leaf;
use orkestra_language::api::names;
use orkestra_object::value::{Key, Path};

/// The label of an `EndpointSlice` that names its Service.
///
/// Source: Kubernetes, "`EndpointSlices`", ownership.
pub const LABEL_SERVICE: &str = "kubernetes.io/service-name";

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

impl KeyPlan {
    /// Returns the templates.
    pub fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        let (name, namespace) = match self {
            Self::Owner | Self::About | Self::Service | Self::Label(_) => (None, None),
            Self::Name { name, namespace } => (Some(name), namespace.as_ref()),
        };
        name.into_iter().chain(namespace)
    }

    /// Returns the paths that must be kept of an object.
    pub(crate) fn kept_paths(&self) -> Vec<Path> {
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
    pub(crate) fn is_same(&self, other: &Self) -> bool {
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
