//! Every state of the objects of a kind, in the order in which the API server wrote them.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::{
    api::{Api, ApiResource, DynamicObject},
    runtime::watcher,
};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::scenario::Scenario;

/// Records until it is dropped.
pub(crate) struct Film {
    states: Arc<Mutex<Vec<Value>>>,
    recording: JoinHandle<Result<()>>,
}

impl Film {
    /// Records the objects of a kind in the scenario's namespace: API version, kind and plural. It has begun when this returns.
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
        let states = Arc::new(Mutex::new(Vec::new()));
        let (begun, begins) = tokio::sync::oneshot::channel();
        let recording = tokio::spawn(record(objects, states.clone(), begun));
        begins.await.context("the watch did not begin")?;
        Ok(Self { states, recording })
    }

    /// The states so far, oldest first.
    pub(crate) fn states(&self) -> Vec<Value> {
        let mut states = self
            .states
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        states.sort_by_key(version);
        states.dedup_by_key(|state| version(state));
        states
    }
}

impl Drop for Film {
    fn drop(&mut self) {
        self.recording.abort();
    }
}

async fn record(
    objects: Api<DynamicObject>,
    states: Arc<Mutex<Vec<Value>>>,
    begun: tokio::sync::oneshot::Sender<()>,
) -> Result<()> {
    let mut begun = Some(begun);
    let mut events = watcher(objects, watcher::Config::default()).boxed();
    while let Some(event) = events.try_next().await? {
        match event {
            watcher::Event::Apply(object)
            | watcher::Event::InitApply(object)
            | watcher::Event::Delete(object) => {
                let state = serde_json::to_value(object)?;
                states
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(state);
            }
            watcher::Event::InitDone => {
                // Whoever waits may have given up.
                let _ = begun.take().map(|begun| begun.send(()));
            }
            watcher::Event::Init => {}
        }
    }
    Ok(())
}

/// The resourceVersion: in one etcd, a later write of any object has a greater one.
pub(crate) fn version(state: &Value) -> u64 {
    let text = state["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}
