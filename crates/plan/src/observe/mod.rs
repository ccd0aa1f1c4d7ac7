//! Objects and Events that trigger a pass.

mod events;
mod key;

use super::{ChildPlan, GroupKind, PlanPlace, ResourceType, kinds};
use orkestra_language::api::observe::Change;
use orkestra_object::value::Path;

pub use events::EVENTS;
pub use events::{EventPlan, event_kind};
pub use key::KeyPlan;
pub use key::LABEL_SERVICE;

/// The triggers of a pass beside the custom resource, its children and the objects that a pass reads.
#[derive(Debug, Default)]
pub struct ObservePlan {
    /// Objects, in the declared order, those of the included file first.
    pub watches: Box<[WatchPlan]>,
    /// Events, by name.
    pub events: Box<[EventPlan]>,
}

/// Objects whose changes trigger a pass.
#[derive(Debug)]
pub struct WatchPlan {
    /// Its path in the Katalog, for messages.
    pub path: PlanPlace,
    /// Their kind.
    pub kind: ResourceType,
    /// Their namespace; `None` is any.
    pub namespace: Option<Box<str>>,
    /// Their name; `None` is any.
    pub name: Option<Box<str>>,
    /// The changes that trigger a pass.
    pub on: Changes,
    /// Finds the custom resource of an object.
    pub key: KeyPlan,
    /// The paths that templates read of them below `.children`, without paths covered by others.
    pub reads: Vec<Path>,
}

/// A set of changes of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Created.
    pub create: bool,
    /// Updated.
    pub update: bool,
    /// Deleted.
    pub delete: bool,
}

impl Changes {
    /// Returns the listed changes; all without a list.
    pub fn of(listed: Option<&[Change]>) -> Self {
        let has = |change| listed.is_none_or(|listed| listed.contains(&change));
        Self {
            create: has(Change::Create),
            update: has(Change::Update),
            delete: has(Change::Delete),
        }
    }

    /// True if both have a change in common.
    pub fn meet(self, other: Self) -> bool {
        self.create && other.create || self.update && other.update || self.delete && other.delete
    }
}

impl WatchPlan {
    /// Returns the paths that are kept of the objects.
    pub fn kept_paths(&self) -> Vec<Path> {
        let mut paths = self.key.kept_paths();
        paths.extend(self.reads.iter().cloned());
        paths
    }

    /// Creates the watch of the `EndpointSlices` of the Services that the operator creates, used if templates read them.
    pub fn of_endpoint_slices() -> Self {
        let kind = endpoint_slice();
        Self {
            path: PlanPlace::new("observe.watch".into()),
            kind,
            namespace: None,
            name: None,
            on: Changes::of(None),
            key: KeyPlan::Service,
            reads: Vec::new(),
        }
    }

    /// Returns the field selector for the API server; `None` selects all.
    pub fn field_selector(&self) -> Option<String> {
        let name = self.name.as_deref()?;
        Some(format!("metadata.name={}", escaped(name)))
    }

    /// True if both lead from the same objects to the same custom resources.
    pub fn is_same(&self, other: &Self) -> bool {
        self.kind.group_kind() == other.kind.group_kind()
            && self.namespace == other.namespace
            && self.name == other.name
            && self.key.is_same(&other.key)
    }
}

/// Returns `EndpointSlice`, which the control plane creates for Services.
pub fn endpoint_slice() -> ResourceType {
    kinds::resource("discovery.k8s.io", "v1", "EndpointSlice")
}

impl ObservePlan {
    /// Returns the kinds that templates can read below `.children` although the operator does not create them: watched
    /// kinds, and the `EndpointSlices` of its Services. Secrets of others are not readable.
    pub fn readable<'a>(
        &'a self,
        children: &'a [ChildPlan],
    ) -> impl Iterator<Item = ResourceType> + 'a {
        let is_service = |child: &ChildPlan| child.kind.group_kind() == GroupKind::parse("Service");
        let slices = children.iter().any(is_service).then(endpoint_slice);
        let watched = self.watches.iter().map(|watch| watch.kind.clone());
        let all = watched.chain(slices);
        all.filter(move |kind| {
            let kind = kind.group_kind();
            let is_made = children.iter().any(|child| child.kind.group_kind() == kind);
            !is_made && kind != GroupKind::parse("Secret")
        })
    }

    /// True if there are no watches and no Events.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty() && self.events.is_empty()
    }
}

/// Escapes a value of a field selector. Source: apimachinery, `fields.EscapeValue`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if ['\\', ',', '='].contains(&c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
