//! The history of a run: all Jobs and generated passwords that ever existed, by the custom resource that owns them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use orkestra_language::api::names::LABEL_OWNER_UID;
use parking_lot::Mutex;
use tokio::task::JoinSet;

/// Values by the uid of the custom resource.
pub(crate) type ByOwner = BTreeMap<String, BTreeSet<String>>;

#[derive(Debug, Default)]
struct Seen {
    jobs: ByOwner,
    passwords: ByOwner,
}

/// Watches of Jobs and Secrets, as the administrator and not through the proxies. They end when this value is dropped.
pub(crate) struct History {
    seen: Arc<Mutex<Seen>>,
    _tasks: JoinSet<()>,
}

impl History {
    /// Starts watches of the Jobs and Secrets of a namespace.
    pub(crate) fn start(client: &Client, namespace: &str) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut tasks = JoinSet::new();
        for (group, version, kind) in [("batch", "v1", "Job"), ("", "v1", "Secret")] {
            let gvk = kube::api::GroupVersionKind::gvk(group, version, kind);
            let resource = ApiResource::from_gvk(&gvk);
            let objects = Api::namespaced_with(client.clone(), namespace, &resource);
            tasks.spawn(follow(objects, seen.clone()));
        }
        Self {
            seen,
            _tasks: tasks,
        }
    }

    /// Returns the uids of all Jobs.
    pub(crate) fn jobs(&self) -> ByOwner {
        self.read(|seen| seen.jobs.clone())
    }

    /// Returns the values of all passwords.
    pub(crate) fn passwords(&self) -> ByOwner {
        self.read(|seen| seen.passwords.clone())
    }

    fn read<T>(&self, what: impl FnOnce(&Seen) -> T) -> T {
        what(&self.seen.lock())
    }
}

/// Records the objects of a watch, which is restarted whenever it breaks.
async fn follow(objects: Api<DynamicObject>, seen: Arc<Mutex<Seen>>) {
    let events = watcher(objects, watcher::Config::default()).default_backoff();
    let mut objects = std::pin::pin!(events.touched_objects());
    while let Some(object) = objects.next().await {
        let Ok(object) = object else { continue };
        let mut seen = seen.lock();
        seen.write_down(&object);
    }
}

impl Seen {
    fn write_down(&mut self, object: &DynamicObject) {
        // A Secret with generated values has no owner reference.
        let labels = object.metadata.labels.as_ref();
        let Some(owner) = labels.and_then(|labels| labels.get(LABEL_OWNER_UID)) else {
            return;
        };
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let (place, value) = if name.ends_with("-fill") {
            (&mut self.jobs, object.metadata.uid.clone())
        } else if name.ends_with("-key") {
            let password = object.data.pointer("/data/password");
            let text = password.and_then(serde_json::Value::as_str);
            (&mut self.passwords, text.map(str::to_owned))
        } else {
            return;
        };
        let of_owner = place.entry(owner.clone()).or_default();
        of_owner.insert(value.unwrap_or_default());
    }
}
