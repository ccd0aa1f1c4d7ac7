//! Changes of a list, as informers see them.
//!
//! ```text
//!  informers, one a kind ── changed key ──► pending keys ── Follower::next ──► the documents of that object now
//! ```
//!
//! What is pending is a set of keys: a burst of changes of one object is one change, and nothing grows with their number.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orkestra_cluster::{
    requests::{Scope, Served},
    watch::{Change, Handle, Informers, Subscriber, WatchState, Watched},
};
use orkestra_ground::Entropy;
use orkestra_object::{
    Identity, ObjectKey,
    record::{Form, Record, Spec, Unrecorded},
    value::{Node, Projection, project},
};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::{ListRequest, Listing, Subject, documents, is_instance, kinds, paths};
use crate::inspect::{Reader, reader::is_secret};

/// A change of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Followed {
    /// What has changed.
    #[serde(rename = "type")]
    pub change: ListChange,
    /// The document, or the last one.
    pub object: Value,
}

/// The kinds of changes, as in the watches of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ListChange {
    /// It is new, or existed when the list was started.
    Added,
    /// It differs from before.
    Modified,
    /// It is gone.
    Deleted,
}

/// The keys that have changed.
#[derive(Default)]
struct Pending {
    keys: Mutex<BTreeSet<(usize, ObjectKey)>>,
    changed: Notify,
}

/// Follows a list.
pub struct Follower {
    request: ListRequest,
    informers: Vec<Box<dyn Follow>>,
    pending: Arc<Pending>,
    /// The documents that were reported, by the key of the object.
    known: BTreeMap<(usize, ObjectKey), Vec<Value>>,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").finish_non_exhaustive()
    }
}

impl Follower {
    /// Starts to watch the kinds of the list; must be called on a tokio runtime. What could not be read to find the kinds is returned,
    /// too.
    pub async fn start(reader: &Reader, request: ListRequest) -> (Self, Listing) {
        let mut listing = Listing::default();
        let kinds = kinds(reader, &request, &mut listing).await;
        let informers = Informers::new(reader.cluster.clone(), Entropy::system());
        let pending = Arc::new(Pending::default());
        let mut all: Vec<Box<dyn Follow>> = Vec::new();
        for (at, kind) in kinds.into_iter().enumerate() {
            all.push(if is_secret(&kind.group_kind()) {
                follow::<true>(&informers, kind, &request, (at, &pending))
            } else {
                follow::<false>(&informers, kind, &request, (at, &pending))
            });
        }
        let this = Self {
            request,
            informers: all,
            pending,
            known: BTreeMap::new(),
        };
        (this, listing)
    }

    /// Returns why kinds cannot be watched at present; their watches are retried.
    pub fn problems(&self) -> Vec<String> {
        let problems = self.informers.iter().filter_map(|one| one.problem());
        problems.collect()
    }

    /// True if no kind can be watched at present.
    pub fn is_blind(&self) -> bool {
        self.informers.iter().all(|one| one.problem().is_some())
    }

    /// Waits until each watch has made its first list or failed.
    pub async fn looked_at(&self) {
        for informer in &self.informers {
            let mut state = informer.state();
            // An error means that the informer has ended.
            let _ = state.wait_for(|now| *now != WatchState::Starting).await;
        }
    }

    /// Returns the changes that are known already: after [`Self::looked_at`], all objects that exist, in the order of their kinds and
    /// keys.
    pub fn drain(&mut self) -> Vec<Followed> {
        let mut changes = Vec::new();
        while let Some(key) = self.pop() {
            changes.extend(self.changed(key));
        }
        changes
    }

    /// Waits for changes. Cancel safe.
    pub async fn next(&mut self) -> Vec<Followed> {
        loop {
            let changes = self.drain();
            if !changes.is_empty() {
                return changes;
            }
            self.pending.changed.notified().await;
        }
    }

    fn pop(&self) -> Option<(usize, ObjectKey)> {
        self.pending.keys.lock().pop_first()
    }

    /// Compares the documents of an object with those that were reported.
    fn changed(&mut self, key: (usize, ObjectKey)) -> Vec<Followed> {
        let Some(informer) = self.informers.get(key.0) else {
            return Vec::new();
        };
        let kind = informer.kind();
        let object = informer.object(&key.1);
        let instances = self.request.subject == Subject::Instances;
        let object = object.filter(|object| !instances || is_instance(&kind, object));
        let now = object.map(|object| documents(&self.request, &kind, object));
        let now = now.unwrap_or_default();
        let before = self.known.remove(&key).unwrap_or_default();
        let mut changes = Vec::new();
        for old in &before {
            if !now.iter().any(|new| is_same(old, new)) {
                changes.push((ListChange::Deleted, old));
            }
        }
        for new in now.iter().filter(|new| !before.contains(new)) {
            let is_known = before.iter().any(|old| is_same(old, new));
            let change = if is_known {
                ListChange::Modified
            } else {
                ListChange::Added
            };
            changes.push((change, new));
        }
        let changes = changes.into_iter().map(|(change, object)| Followed {
            change,
            object: object.clone(),
        });
        let changes = changes.collect();
        if !now.is_empty() {
            self.known.insert(key, now);
        }
        changes
    }
}

/// True if two documents are of the same object or operator.
fn is_same(a: &Value, b: &Value) -> bool {
    let keys = ["/metadata/uid", "/name"];
    keys.iter().all(|key| a.pointer(key) == b.pointer(key))
}

/// An informer of one form of records.
trait Follow: Send + Sync {
    fn kind(&self) -> Served;
    fn object(&self, key: &ObjectKey) -> Option<Node>;
    fn state(&self) -> watch::Receiver<WatchState>;
    fn problem(&self) -> Option<String>;
}

impl<const METADATA: bool> Follow for Handle<Shown<METADATA>> {
    fn kind(&self) -> Served {
        self.served().clone()
    }

    fn object(&self, key: &ObjectKey) -> Option<Node> {
        Some(self.store().get(key)?.object.clone())
    }

    fn state(&self) -> watch::Receiver<WatchState> {
        self.state()
    }

    fn problem(&self) -> Option<String> {
        let why = self.readable().err()?;
        Some(format!("cannot watch {}: {why}", self.served().plural))
    }
}

fn follow<const METADATA: bool>(
    informers: &Informers,
    kind: Served,
    request: &ListRequest,
    (at, pending): (usize, &Arc<Pending>),
) -> Box<dyn Follow> {
    let scope = Scope {
        namespace: request.namespace.clone().filter(|_| kind.namespaced),
        selector: request.selector.clone(),
        fields: request.fields.clone(),
    };
    let watched = Watched {
        served: kind,
        scope,
    };
    let pending = pending.clone();
    let subscriber: Subscriber<Shown<METADATA>> =
        Arc::new(move |change: &Change<Shown<METADATA>>| {
            pending.keys.lock().insert((at, change.key.clone()));
            pending.changed.notify_one();
        });
    Box::new(informers.shared(watched, &paths(request), Some(subscriber)))
}

/// The fields of an object that are shown. Of Secrets only metadata is requested.
struct Shown<const METADATA: bool> {
    id: Identity,
    object: Node,
}

impl<const METADATA: bool> Record for Shown<METADATA> {
    const FORM: Form = if METADATA {
        Form::Metadata
    } else {
        Form::Whole
    };

    fn read(object: &Node, spec: &Spec) -> Result<Self, Unrecorded> {
        Ok(Self {
            id: Identity::read(object)?,
            object: project(object, &spec.paths),
        })
    }

    fn projection(spec: &Spec) -> Projection {
        Projection::new(&spec.paths)
    }

    fn identity(&self) -> &Identity {
        &self.id
    }

    fn heap_bytes(&self) -> usize {
        self.id.heap_bytes() + self.object.heap_bytes()
    }

    fn differs(&self, before: &Self) -> bool {
        self.object != before.object
    }
}
