//! All CRDs of the cluster, with one watch for the process.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use orkestra_core::{
    plan::{GroupKind, ObjectKey, ResourceType},
    reconcile::crd::CrdRecord,
    value::Key,
};
use orkestra_ground::Entropy;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Change, Handle, Reports, WatchState, Watched, registry};
use crate::requests::{Cluster, Scope, Served};

/// CRDs per page of a list: one may be a megabyte.
const PAGE: u32 = 20;

/// The CRDs, by the kind that they define.
pub struct Crds {
    handle: Handle<CrdRecord>,
    index: Arc<Index>,
}

/// Names of the CRDs that define a kind: two, if a second one waits for names that the first has.
struct Index {
    names: Mutex<HashMap<GroupKind, BTreeSet<Key>>>,
    changed: watch::Sender<u64>,
}

impl fmt::Debug for Crds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crds")
            .field("store", self.handle.store())
            .finish_non_exhaustive()
    }
}

impl Crds {
    /// Starts the watch and reports unreadable CRDs; must be called on a tokio runtime.
    pub fn start(cluster: Cluster, entropy: Entropy, reports: Reports) -> Self {
        let index = Arc::new(Index {
            names: Mutex::default(),
            changed: watch::channel(0).0,
        });
        let watched = Watched {
            served: Served::crds(),
            scope: Scope::default(),
        };
        let reported = index.clone();
        let informer = registry::start(watched, PAGE, &[], cluster, entropy, reports);
        let handle = informer.join(&[], Some(Arc::new(move |change| reported.take_in(change))));
        Self { handle, index }
    }

    /// Returns the CRD that defines that kind; of two, the one whose names are accepted.
    pub fn get(&self, kind: &GroupKind) -> Option<Arc<CrdRecord>> {
        let names = self.index.names.lock().get(kind).cloned()?;
        let records = names.into_iter().filter_map(|name| {
            self.handle.store().get(&ObjectKey {
                namespace: None,
                name,
            })
        });
        records
            .filter(|record| record.group_kind() == *kind)
            .max_by_key(|record| (record.names_accepted, record.established))
    }

    /// True if there is a CRD of that name.
    pub fn has(&self, name: &str) -> bool {
        let key = ObjectKey {
            namespace: None,
            name: name.into(),
        };
        self.handle.store().get(&key).is_some()
    }

    /// What defines the kind of an operator: its CRD, or for a built-in kind, which has none, what stands in for one.
    pub fn definition(&self, resource: &ResourceType) -> Option<Arc<CrdRecord>> {
        match CrdRecord::built_in(resource) {
            Some(built_in) => Some(Arc::new(built_in)),
            None => self.get(&resource.group_kind()),
        }
    }

    /// How that version of the kind is served, where its CRD is established and serves it.
    pub fn served(&self, kind: &GroupKind, version: &str) -> Option<Served> {
        let record = self.get(kind).filter(|record| record.serves(version))?;
        Some(Served {
            group: record.group.clone(),
            version: version.into(),
            kind: record.kind.clone(),
            plural: record.plural.clone(),
            namespaced: record.namespaced,
        })
    }

    /// A number that grows whenever a record of any CRD changes.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.index.changed.subscribe()
    }

    /// The state of the watch.
    pub fn state(&self) -> watch::Receiver<WatchState> {
        self.handle.state()
    }

    /// Waits until all CRDs are known.
    pub async fn synced(&self) {
        self.handle.synced().await;
    }

    /// The number of CRDs.
    pub fn len(&self) -> usize {
        self.handle.store().len()
    }

    /// True if there are no CRDs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Index {
    fn take_in(&self, change: &Change<CrdRecord>) {
        let mut names = self.names.lock();
        if let Some(before) = &change.before
            && let Some(of_kind) = names.get_mut(&before.group_kind())
        {
            of_kind.remove(&change.key.name);
            if of_kind.is_empty() {
                names.remove(&before.group_kind());
            }
        }
        if let Some(after) = &change.after {
            names
                .entry(after.group_kind())
                .or_default()
                .insert(change.key.name.clone());
        }
        drop(names);
        self.changed.send_modify(|version| *version += 1);
    }
}
