//! Latency of other custom resources next to hostile objects: the time from a change to the child, compared with the time before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::scenario::{LIMIT, Objects, Scenario, measured, pause};
use crate::waters;

/// The limit of the median time from a change to the child.
const SOON: Duration = Duration::from_secs(1);
/// The limit of the slowest change, as a multiple of the slowest change before there was any hostile object.
const FACTOR: u32 = 10;
/// The time that the slowest change may take in any case: the machine has two cores, and compiles and runs other tests.
const LEAST: Duration = Duration::from_secs(5);
/// The number of neighbours, each in its own namespace; the first one is in the scenario's namespace.
const NEIGHBOURS: usize = 3;
/// The number of changes of each neighbour per measurement.
const ROUNDS: usize = 3;
/// The name of each neighbour.
const NAME: &str = "neighbour";

/// A kind of custom resource whose child, a `ConfigMap`, has the value of one field.
pub(crate) struct Followed {
    kind: &'static str,
    plural: &'static str,
    field: &'static str,
    /// The suffix of the `ConfigMap`'s name, which follows the name of the custom resource and a hyphen.
    child: &'static str,
}

/// The Pond of `panic/katalog.yaml`.
pub(crate) const PONDS: Followed = Followed {
    kind: "Pond",
    plural: "ponds",
    field: "colour",
    child: "pond",
};
/// The Orchard of `garden/katalog.yaml`.
pub(crate) const ORCHARDS: Followed = Followed {
    kind: "Orchard",
    plural: "orchards",
    field: "fruit",
    child: "basket",
};

/// Several custom resources of a kind.
pub(crate) struct Neighbours {
    of: Followed,
    /// The custom resources and the `ConfigMap`s of each namespace.
    homes: Vec<(Objects, Objects)>,
    round: usize,
    /// The time of the slowest change before there was any hostile object.
    slowest: Duration,
}

impl Neighbours {
    /// Creates the neighbours, waits until they are ready, and measures the times of changes.
    pub(crate) async fn settle(scenario: &Scenario, of: Followed) -> Result<Self> {
        let mut homes = Vec::new();
        for number in 0..NEIGHBOURS {
            let namespace = match number {
                0 => scenario.namespace.clone(),
                _ => waters::second_namespace(&scenario.client).await?,
            };
            let objects = |plural| scenario.objects_in(&namespace, plural);
            homes.push((objects(of.plural), objects("configmaps")));
        }
        let resource = waters::resource(scenario, of.kind, NAME, &json!({ of.field: "n0" }));
        for (resources, _) in &homes {
            resources.create(&resource).await?;
            resources.until_ready(NAME).await?;
        }
        let mut neighbours = Self {
            of,
            homes,
            round: 0,
            slowest: Duration::ZERO,
        };
        let (median, slowest) = neighbours.measure().await?;
        println!("before: median {median:?}, slowest {slowest:?}");
        neighbours.slowest = slowest;
        Ok(neighbours)
    }

    /// Checks that the children follow changes: in the median within a second, and none much later than before.
    pub(crate) async fn ensure_followed(&mut self) -> Result<()> {
        let bound = LEAST.max(self.slowest * FACTOR);
        let what = format!("median and slowest change, of {SOON:?} and {bound:?}");
        let is_soon =
            |(median, slowest): &(Duration, Duration)| *median <= SOON && *slowest <= bound;
        measured(&what, is_soon, async || self.measure().await)
            .await
            .map(drop)
    }

    /// Changes all neighbours at once, [`ROUNDS`] times; returns the median and the maximum of the times until their children have
    /// the change.
    async fn measure(&mut self) -> Result<(Duration, Duration)> {
        let mut took = Vec::new();
        for _ in 0..ROUNDS {
            self.round += 1;
            let value = json!(format!("n{}", self.round));
            let changes = self.homes.iter().map(|home| self.change(home, &value));
            took.extend(try_join_all(changes).await?);
        }
        took.sort_unstable();
        Ok((took[took.len() / 2], took[took.len() - 1]))
    }

    /// Changes one neighbour, and returns the time until its `ConfigMap` has the value.
    async fn change(
        &self,
        (resources, maps): &(Objects, Objects),
        value: &Value,
    ) -> Result<Duration> {
        let Followed { field, child, .. } = self.of;
        let patch = json!({ "spec": { field: value } });
        let started = Instant::now();
        resources.patch(NAME, &patch).await?;
        let (child, at) = (format!("{NAME}-{child}"), format!("/data/{field}"));
        maps.until_equal(&child, &at, value.clone(), LIMIT).await?;
        Ok(started.elapsed())
    }
}

/// Starts a task that changes the ponds one after the other, every few milliseconds, until `stop` is cancelled. `changes` is
/// the number of its changes, which the task returns, too.
pub(crate) fn toggle(
    objects: Objects,
    names: Vec<String>,
    (stop, changes): (CancellationToken, Arc<AtomicU64>),
) -> JoinHandle<Result<u64>> {
    tokio::spawn(async move {
        let mut toggles = 0_u64;
        for name in names.iter().cycle() {
            if stop.is_cancelled() {
                break;
            }
            let change = json!({ "spec": { "depth": toggles.to_string() } });
            objects.patch(name, &change).await?;
            toggles += 1;
            changes.store(toggles, Ordering::SeqCst);
            pause(Duration::from_millis(5)).await;
        }
        anyhow::Ok(toggles)
    })
}
