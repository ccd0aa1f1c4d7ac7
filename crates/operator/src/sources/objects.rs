//! Objects of other owners, by name: Secrets, `ConfigMaps` and other copied objects.
//!
//! ```text
//!  watch of metadata, objects of the kind ──────► the version of each object; a change queues its readers
//!  GET, an object that is read, an unknown version ──► its content, kept while it has readers
//! ```
//!
//! A pass over unchanged objects makes no request to the API server.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
    time::Duration,
};

use orkestra_cluster::{
    requests::{ClusterError, Scope, Served},
    watch::{Handle, Presence, Record, Subscriber, WatchProblem, WatchState, Watched},
};
use orkestra_engine::reconcile::{
    record::{Identity, Observed},
    sources::{Answer, Read},
};
use orkestra_object::{
    decode::Version,
    value::{Fault, Map, Node},
};
use orkestra_plan::{ChildKey, GroupKind};
use parking_lot::Mutex;

use super::readers::Readers;
use crate::{context::Context, requests::Requests};

/// How long a pass waits for the first list of a kind.
const PATIENCE: Duration = Duration::from_secs(10);

/// The objects of other owners that one operator reads.
pub(crate) struct Objects {
    context: Arc<Context>,
    readers: Arc<Readers>,
    watches: Mutex<BTreeMap<KindScope, Arc<Handle<Presence>>>>,
    known: Arc<Mutex<ObjectStates>>,
}

/// A kind, and the namespace in which its objects are watched; none means all.
type KindScope = (GroupKind, Option<Box<str>>);

/// The content of the objects that are read.
type ObjectStates = HashMap<ChildKey, ObjectState>;

struct ObjectState {
    resource_version: Version,
    content: Arc<Node>,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

impl Objects {
    /// Creates the objects of an operator; their changes queue `readers`.
    pub(crate) fn new(context: Arc<Context>, readers: Arc<Readers>) -> Self {
        Self {
            context,
            readers,
            watches: Mutex::default(),
            known: Arc::default(),
        }
    }

    /// Releases objects that have no readers any more.
    pub(crate) fn release(&self, unread: &[Read]) {
        for read in unread {
            let Read::Object(object) = read else { continue };
            self.known.lock().remove(object);
            self.watches.lock().retain(|place, _| {
                place.0 != object.kind || self.readers.any(|read| is_in(read, place))
            });
        }
    }

    /// Returns the problems of the watches.
    pub(crate) fn problems(&self) -> Vec<(GroupKind, WatchProblem)> {
        let watches = self.watches.lock();
        watches
            .values()
            .filter_map(|watch| watch.problem())
            .collect()
    }

    /// Returns the states of the watches.
    pub(crate) fn states(&self) -> Vec<tokio::sync::watch::Receiver<WatchState>> {
        let watches = self.watches.lock();
        watches.values().map(|watch| watch.state()).collect()
    }

    /// Returns the watch of a kind in one namespace or in all; it starts with its first reader.
    fn watch(&self, served: &Served, namespace: Option<&str>) -> Arc<Handle<Presence>> {
        let kind = served.group_kind();
        let mut watches = self.watches.lock();
        let start = || {
            let scoped = Watched {
                served: served.clone(),
                scope: Scope {
                    namespace: namespace.map(str::to_owned),
                    ..Scope::default()
                },
            };
            let subscriber = self.subscriber(&kind);
            Arc::new(self.context.informers.shared(scoped, &[], Some(subscriber)))
        };
        let place = (kind.clone(), namespace.map(Into::into));
        watches.entry(place).or_insert_with(start).clone()
    }

    /// Queues the readers of a changed object, unless that version is known already.
    fn subscriber(&self, kind: &GroupKind) -> Subscriber<Presence> {
        let (kind, known) = (kind.clone(), Arc::downgrade(&self.known));
        let readers = Arc::downgrade(&self.readers);
        Arc::new(move |change| {
            let (Some(known), Some(readers)) = (known.upgrade(), readers.upgrade()) else {
                return;
            };
            let object = ChildKey {
                kind: kind.clone(),
                object: change.key.clone(),
            };
            let is_known = change.after.as_ref().is_some_and(|now| {
                let known = known.lock();
                let version = known.get(&object).map(|state| &state.resource_version);
                version == Some(&now.id.resource_version)
            });
            if !is_known {
                readers.changed(&Read::Object(object));
            }
        })
    }

    /// Returns the object as it is now, for a pass that sees `observed`; none if the pass is about to be queued for it anyway.
    ///
    /// The object is watched in `namespace`, or in all.
    ///
    /// Children are watched twice, and our last write is known among the children at once. Either watch may lag behind: pods that
    /// rolled with an older state would roll twice.
    pub(crate) async fn read(
        &self,
        requests: &Requests,
        observed: &Observed,
        object: &ChildKey,
        namespace: Option<&str>,
    ) -> Option<Answer> {
        let kind = &object.kind;
        let Some(served) = crate::served::built_in(kind, "v1") else {
            let why = format!("objects of kind {kind} cannot be read");
            return Some(Answer::Unavailable(why.into()));
        };
        let watch = self.watch(&served, namespace);
        if let Some(why) = until_listed(&watch).await {
            return Some(Answer::Unavailable(why));
        }
        let seen = watch.store().get(&object.object);
        let seen = seen.as_ref().map(|seen| &seen.id.resource_version);
        let made = observed.child(object);
        let written = made.map(|made| &made.id.resource_version);
        let Some(now) = latest(seen, written) else {
            self.known.lock().remove(object);
            return Some(Answer::Absent);
        };
        let known = {
            let known = self.known.lock();
            known
                .get(object)
                .filter(|known| known.resource_version == *now)
                .map(|known| known.content.clone())
        };
        if let Some(content) = known {
            return Some(Answer::Ready(content));
        }
        match requests.get(&served, &object.object).await {
            Ok(found) => {
                if let Some(fault) = Fault::all_of(&found).pop() {
                    return Some(Answer::Unavailable(fault.to_string().into()));
                }
                let content = Arc::new(content(kind, &found));
                if let Ok(id) = Identity::read(&found) {
                    let state = ObjectState {
                        resource_version: id.resource_version,
                        content: content.clone(),
                    };
                    self.known.lock().insert(object.clone(), state);
                }
                Some(Answer::Ready(content))
            }
            Err(ClusterError::NotFound(_)) => {
                self.known.lock().remove(object);
                // A deleted child: its watch will report that.
                made.is_none().then_some(Answer::Absent)
            }
            Err(error) => Some(Answer::Unavailable(error.to_string().into())),
        }
    }
}

/// True if `read` is of an object that is watched there.
fn is_in(read: &Read, (kind, namespace): &KindScope) -> bool {
    let Read::Object(object) = read else {
        return false;
    };
    object.kind == *kind
        && (namespace.is_none() || object.object.namespace.as_deref() == namespace.as_deref())
}

/// Returns the newer of two versions.
fn latest<'a>(a: Option<&'a Version>, b: Option<&'a Version>) -> Option<&'a Version> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.is_newer_than(a) { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// Waits until the watch has completed its initial list; returns the reason if it cannot.
pub(crate) async fn until_listed<R: Record>(watch: &Handle<R>) -> Option<Box<str>> {
    let mut state = watch.state();
    let started = state.wait_for(|state| *state != WatchState::Starting);
    let state = match tokio::time::timeout(PATIENCE, started).await {
        Ok(Ok(state)) => state.clone(),
        _ => WatchState::Starting,
    };
    match state {
        WatchState::Synced
        | WatchState::Failing {
            was_synced: true, ..
        } => None,
        WatchState::Starting => Some("the API server has not listed them yet".into()),
        WatchState::Failing { problem, .. } => Some(match problem {
            WatchProblem::NotServed => "the API server does not serve them".into(),
            WatchProblem::Forbidden { message } | WatchProblem::Unavailable { message, .. } => {
                message.into()
            }
        }),
    }
}

/// Returns the object without its metadata; a Namespace keeps its labels, which selectors need.
fn content(kind: &GroupKind, object: &Node) -> Node {
    let fields = object.as_map().into_iter().flat_map(Map::iter);
    let kept = fields.filter(|(name, _)| &***name != "metadata");
    let mut content: Map = kept
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let labels = object.meta("labels");
    if let Some(labels) = labels
        && *kind == GroupKind::parse("Namespace")
    {
        let metadata = Node::object([("labels", labels.clone())]);
        content.insert("metadata".into(), metadata);
    }
    Node::Map(content)
}
