//! All CRDs of the cluster, with one watch for the process.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use orkestra_cluster::{
    requests::{Scope, Served},
    watch::{Change, Handle, Informers, WatchState, Watched},
};
use orkestra_engine::reconcile::crd::CrdRecord;
use orkestra_object::value::Key;
use orkestra_plan::{GroupKind, ObjectKey, ResourceType};
use parking_lot::Mutex;
use tokio::sync::watch;

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
    pub fn start(informers: &Informers) -> Self {
        let index = Arc::new(Index {
            names: Mutex::default(),
            changed: watch::channel(0).0,
        });
        let watched = Watched {
            served: Served::crds(),
            scope: Scope::default(),
        };
        let reported = index.clone();
        let subscriber = Arc::new(move |change: &Change<CrdRecord>| reported.take_in(change));
        let handle = informers.alone(watched, subscriber);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use orkestra_cluster::watch::testing::{Server, list};
    use orkestra_ground::Entropy;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn crds_are_found_by_the_kind_they_define() {
        let crd = |name: &str, version: u64, kind: &str, accepted: &str| {
            format!(
                r#"{{"metadata":{{"name":"{name}","uid":"u-{name}","resourceVersion":"{version}"}},"spec":{{"group":"shop.example","scope":"Namespaced","names":{{"kind":"{kind}","plural":"{name}"}},"versions":[{{"name":"v1","served":true,"storage":true}}]}},"status":{{"conditions":[{{"type":"NamesAccepted","status":"{accepted}"}},{{"type":"Established","status":"{accepted}"}}]}}}}"#
            )
        };
        let server = Server::new();
        server.answer(
            200,
            list(
                20,
                "",
                &[
                    crd("websites", 10, "Website", "True"),
                    crd("sites", 11, "Website", "False"),
                ],
            ),
        );
        let feed = server.watch();
        let crds = Crds::start(&Informers::new(server.cluster(), Entropy::seeded(7)));
        crds.synced().await;
        let kind = GroupKind::parse("Website.shop.example");
        assert_eq!(&*crds.get(&kind).unwrap().plural, "websites");
        assert_eq!(&*crds.served(&kind, "v1").unwrap().plural, "websites");
        assert!(crds.served(&kind, "v2").is_none());
        let mut changed = crds.changed();
        changed.mark_unchanged();
        feed.send("DELETED", &crd("websites", 21, "Website", "True"));
        changed.changed().await.unwrap();
        assert_eq!(&*crds.get(&kind).unwrap().plural, "sites");
        assert!(crds.served(&kind, "v1").is_none());
        assert!(
            server.requests()[0]
                .uri
                .ends_with("/customresourcedefinitions?limit=20")
        );
        sleep(Duration::from_secs(1)).await;
    }
}
