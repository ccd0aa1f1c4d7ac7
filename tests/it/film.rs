//! A recorder of all states of the objects of a kind, in the order in which the API server wrote them.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::{
    api::{Api, ApiResource, DynamicObject, ListParams},
    runtime::watcher,
};
use parking_lot::Mutex;
use serde_json::Value;
use testbed::eventually;
use tokio::task::JoinHandle;

use crate::scenario::{LIMIT, Scenario};

/// A recorder that runs until it is dropped.
pub(crate) struct Film {
    objects: Api<DynamicObject>,
    recorded: Arc<Mutex<Recorded>>,
    recording: JoinHandle<Result<()>>,
}

/// The states that the watch has delivered.
#[derive(Default)]
struct Recorded {
    states: Vec<Value>,
    /// The resourceVersion of each object that exists, by uid.
    latest: BTreeMap<Option<String>, Option<String>>,
}

impl Film {
    /// Records the objects of a kind in the scenario's namespace: API version, kind and plural. The watch has begun on return.
    pub(crate) async fn start(scenario: &Scenario, kind: [&str; 3]) -> Result<Self> {
        let [api_version, kind, plural] = kind;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource {
            group: group.into(),
            version: version.into(),
            api_version: api_version.into(),
            kind: kind.into(),
            plural: plural.into(),
        };
        let objects: Api<DynamicObject> =
            Api::namespaced_with(scenario.client.clone(), &scenario.namespace, &resource);
        let recorded = Arc::<Mutex<Recorded>>::default();
        let (begun, begins) = tokio::sync::oneshot::channel();
        let recording = tokio::spawn(record(objects.clone(), recorded.clone(), begun));
        begins.await.context("the watch did not begin")?;
        Ok(Self {
            objects,
            recorded,
            recording,
        })
    }

    /// Returns all states until now, oldest first. It waits until the watch has delivered everything that a list returns.
    pub(crate) async fn states(&self) -> Result<Vec<Value>> {
        let mut states = eventually("the watch has delivered everything", LIMIT, async || {
            let listed = self.objects.list(&ListParams::default()).await?.items;
            let present: BTreeMap<_, _> = listed.iter().map(uid_and_version).collect();
            let recorded = self.recorded.lock();
            Ok((recorded.latest == present).then(|| recorded.states.clone()))
        })
        .await?;
        states.sort_by_key(version);
        states.dedup_by_key(|state| version(state));
        Ok(states)
    }
}

impl Drop for Film {
    fn drop(&mut self) {
        self.recording.abort();
    }
}

async fn record(
    objects: Api<DynamicObject>,
    recorded: Arc<Mutex<Recorded>>,
    begun: tokio::sync::oneshot::Sender<()>,
) -> Result<()> {
    let mut begun = Some(begun);
    let mut events = watcher(objects, watcher::Config::default()).boxed();
    while let Some(event) = events.try_next().await? {
        match event {
            watcher::Event::Apply(object) | watcher::Event::InitApply(object) => {
                let (uid, version) = uid_and_version(&object);
                let mut recorded = recorded.lock();
                recorded.latest.insert(uid, version);
                recorded.states.push(serde_json::to_value(object)?);
            }
            watcher::Event::Delete(object) => {
                let mut recorded = recorded.lock();
                recorded.latest.remove(&object.metadata.uid);
                recorded.states.push(serde_json::to_value(object)?);
            }
            watcher::Event::InitDone => {
                // The receiver may have been dropped.
                let _ = begun.take().map(|begun| begun.send(()));
            }
            // The events of all existing objects follow.
            watcher::Event::Init => recorded.lock().latest.clear(),
        }
    }
    Ok(())
}

fn uid_and_version(object: &DynamicObject) -> (Option<String>, Option<String>) {
    let metadata = &object.metadata;
    (metadata.uid.clone(), metadata.resource_version.clone())
}

/// Returns the resourceVersion: in one etcd, a later write of any object has a greater one.
pub(crate) fn version(state: &Value) -> u64 {
    let text = state["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}
