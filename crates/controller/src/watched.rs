//! The meta-controller's own watches of Katalogs, Motifs and the Leases of claims: an unreadable object is reported, and does
//! not block others.

use std::sync::Arc;

use kube::api::DynamicObject;
use orkestra_cluster::{
    requests::{self, Served},
    watch::{
        Change, Handle, Informers, Record, Spec, Unrecorded, WatchProblem, WatchState, Watched,
    },
};
use orkestra_engine::reconcile::record::Identity;
use orkestra_ground::changes::{change, first};
use orkestra_language::api::names;
use orkestra_object::value::{Cause, Fault, Node, Path, Projection};
use orkestra_plan::{Declaring, KatalogRef, ObjectKey};
use tokio::sync::mpsc;

/// The problem if the API server does not serve our own kinds.
const NOT_INSTALLED: &str =
    "Orkestra's CRDs are not installed: run `ork crds | kubectl apply -f -`";

/// The namespaces whose Katalogs are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// All namespaces.
    All,
    /// Only these namespaces.
    Some(Vec<String>),
}

impl Namespaces {
    /// The Katalogs of these namespaces; of all, if there are none.
    pub fn of(mut namespaces: Vec<String>) -> Self {
        if namespaces.is_empty() {
            return Self::All;
        }
        namespaces.sort_unstable();
        namespaces.dedup();
        Self::Some(namespaces)
    }

    /// Returns one scope for each namespace, or one for all.
    pub(crate) fn scopes(&self) -> Vec<Scope> {
        match self {
            Self::All => vec![None],
            Self::Some(namespaces) => namespaces.iter().cloned().map(Some).collect(),
        }
    }
}

/// A namespace; none means all.
pub(crate) type Scope = Option<String>;

/// The stored form of an object's content.
pub(crate) trait WatchedContent: Send + Sync + Sized + 'static {
    /// Converts an object. If it is partly unreadable, the data has [`Fault::MARK`], and lacks the parts that it names.
    fn new(object: DynamicObject) -> Self;
}

/// An object of the cluster, with its unreadable parts.
#[derive(Debug)]
pub(crate) struct ReadObject<T> {
    id: Identity,
    pub(crate) content: Arc<T>,
    pub(crate) unread: Option<Fault>,
}

#[cfg(test)]
impl<T> ReadObject<T> {
    /// Returns a readable object with that content.
    pub(crate) fn of(content: T) -> Self {
        let key = ObjectKey {
            namespace: None,
            name: "one".into(),
        };
        Self {
            id: Identity {
                key,
                uid: "u1".into(),
                resource_version: "1".into(),
            },
            content: Arc::new(content),
            unread: None,
        }
    }
}

impl<T: WatchedContent> Record for ReadObject<T> {
    fn read(object: &Node, _: &Spec) -> Result<Self, Unrecorded> {
        let id = Identity::read(object)?;
        let unread = Fault::first_beside_managed_fields(Fault::all_of(object));
        let object = serde_json::from_value(object.to_json()).map_err(|_| Fault {
            path: Path::of_fields(["metadata"]),
            cause: Cause::Syntax,
        })?;
        Ok(Self {
            id,
            content: Arc::new(T::new(object)),
            unread,
        })
    }

    fn fault(&self) -> Option<&Fault> {
        self.unread.as_ref()
    }

    fn projection(_: &Spec) -> Projection {
        Projection::whole()
    }

    fn identity(&self) -> &Identity {
        &self.id
    }

    fn heap_bytes(&self) -> usize {
        size_of::<T>()
    }

    fn differs(&self, before: &Self) -> bool {
        self.id != before.id
    }
}

/// A change of an object: look it up in the watch with that index.
pub(crate) struct ChangedObject {
    pub(crate) watch: usize,
    pub(crate) key: ObjectKey,
    /// Whether the API server was restored to an older state: earlier states no longer count.
    pub(crate) rewound: bool,
}

/// The watches of one of our own kinds, one for each scope.
pub(crate) struct Watches<T: WatchedContent> {
    pub(crate) handles: Vec<(Scope, Handle<ReadObject<T>>)>,
    pub(crate) changed: mpsc::UnboundedReceiver<ChangedObject>,
    sender: mpsc::UnboundedSender<ChangedObject>,
    /// The last logged problem of each.
    problems: Vec<Option<WatchProblem>>,
}

impl<T: WatchedContent> Watches<T> {
    /// Starts watches of the objects of a kind in each of `scopes`; must be called on a tokio runtime.
    pub(crate) fn start(
        informers: &Informers,
        served: &Served,
        scopes: impl IntoIterator<Item = Scope>,
    ) -> Self {
        let mut watches = Self::none();
        for scope in scopes {
            watches.add(informers, served, scope, None);
        }
        watches
    }

    /// Returns no watches.
    pub(crate) fn none() -> Self {
        let (sender, changed) = mpsc::unbounded_channel();
        Self {
            handles: Vec::new(),
            changed,
            sender,
            problems: Vec::new(),
        }
    }

    /// Starts another watch, of all objects of a kind in a scope, or of the one of that name; must be called on a tokio runtime.
    pub(crate) fn add(
        &mut self,
        informers: &Informers,
        served: &Served,
        scope: Scope,
        name: Option<&str>,
    ) {
        let watch = self.handles.len();
        let sender = self.sender.clone();
        let subscriber = move |change: &Change<ReadObject<T>>| {
            let versions = change.before.as_ref().zip(change.after.as_ref());
            let rewound = versions.is_some_and(|(before, after)| {
                let (before, after) = (&before.id, &after.id);
                after.resource_version.is_behind(&before.resource_version)
            });
            // An error means that the receiver is gone.
            let _ = sender.send(ChangedObject {
                watch,
                key: change.key.clone(),
                rewound,
            });
        };
        let watched = Watched {
            served: served.clone(),
            scope: requests::Scope {
                namespace: scope.clone(),
                fields: name.map(|name| format!("metadata.name={name}")),
                ..requests::Scope::default()
            },
        };
        let handle = informers.alone(watched, Arc::new(subscriber));
        self.handles.push((scope, handle));
        self.problems.push(None);
    }

    /// Returns the changed object, if it exists.
    pub(crate) fn get(&self, changed: &ChangedObject) -> Option<Arc<ReadObject<T>>> {
        let (_, handle) = self.handles.get(changed.watch)?;
        handle.store().get(&changed.key)
    }

    /// Returns all objects of a watch.
    pub(crate) fn all(&self, watch: usize) -> Vec<Arc<T>> {
        let handle = self.handles.get(watch);
        let records = handle.map(|(_, handle)| handle.store().snapshot());
        let records = records.unwrap_or_default();
        records
            .iter()
            .map(|record| record.content.clone())
            .collect()
    }

    /// True if a watch has ever completed its initial list.
    pub(crate) fn was_synced(&self, watch: usize) -> bool {
        let handle = self.handles.get(watch);
        handle.is_some_and(|(_, handle)| match &*handle.state().borrow() {
            WatchState::Synced => true,
            WatchState::Starting => false,
            WatchState::Failing { was_synced, .. } => *was_synced,
        })
    }

    /// Returns when any watch changes its state.
    pub(crate) async fn changed(states: &mut [tokio::sync::watch::Receiver<WatchState>]) {
        first(states.iter_mut().map(change)).await;
    }

    /// Returns the states of the watches, each marked as changed: a watch that was listed before a task waited for it would
    /// otherwise never be noticed.
    pub(crate) fn states(&self) -> Vec<tokio::sync::watch::Receiver<WatchState>> {
        let states = self.handles.iter().map(|(_, handle)| {
            let mut state = handle.state();
            state.mark_changed();
            state
        });
        states.collect()
    }

    /// Returns the first problem of the watches, as text.
    pub(crate) fn problem(&self) -> Option<String> {
        let mut problems = self
            .handles
            .iter()
            .filter_map(|(_, handle)| handle.problem());
        problems.next().map(|(_, problem)| words(problem))
    }

    /// Returns a problem of the watches that was not reported yet, as text.
    pub(crate) fn new_problem_text(&mut self) -> Option<String> {
        self.new_problem().map(words)
    }

    /// Returns a problem of the watches that was not reported yet.
    pub(crate) fn new_problem(&mut self) -> Option<WatchProblem> {
        let mut new = None;
        for (changed, (_, handle)) in self.problems.iter_mut().zip(&self.handles) {
            let problem = handle.problem().map(|(_, problem)| problem);
            if *changed != problem {
                new = problem.clone().or(new);
                *changed = problem;
            }
        }
        new
    }
}

/// Describes a problem of a watch of our own kinds.
pub(crate) fn words(problem: WatchProblem) -> String {
    match problem {
        WatchProblem::NotServed => NOT_INSTALLED.to_owned(),
        WatchProblem::Forbidden { message } | WatchProblem::Unavailable { message, .. } => message,
    }
}

/// Returns the namespace and name of an object.
pub(crate) fn reference(key: &ObjectKey) -> KatalogRef {
    KatalogRef::new(
        key.namespace.as_deref().unwrap_or_default().to_owned(),
        key.name.to_string(),
    )
}

/// A kind that declares operators, as it is served.
pub(crate) fn declaring(kind: Declaring) -> Served {
    own_kind(kind.kind(), kind.plural())
}

/// One of Orkestra's own kinds, as it is served.
pub(crate) fn own_kind(kind: &str, plural: &str) -> Served {
    Served::namespaced(names::GROUP, names::VERSION, kind, plural)
}
