//! Custom resources beside hostile objects: how soon each follows its spec, before there is any hostile object and with it.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use futures::try_join;
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Objects, Scenario};
use crate::waters;

/// How soon half of all changes are followed, where the machine is quick enough.
const SOON: Duration = Duration::from_secs(1);
/// How many times as long as the test's own writes at the same moment half of all changes may take. A change needs three requests
/// one after the other and two events of watches at the least.
const WRITES: u32 = 8;
/// How long the slowest change may take, as a multiple of the slowest before there was any hostile object.
const FACTOR: u32 = 10;
/// How long it may take in any case: the machine has two cores, and compiles and runs other tests meanwhile.
const LEAST: Duration = Duration::from_secs(5);
/// How many neighbours there are, each in a namespace of its own; the first one in the scenario's.
const NEIGHBOURS: usize = 3;
/// How often each is changed whenever they are measured.
const ROUNDS: usize = 3;
/// The name of each neighbour.
const NAME: &str = "neighbour";
/// The name of the `ConfigMap` beside each neighbour that only the test writes.
const OWN: &str = "written-by-the-test";

/// A kind of custom resource with a `ConfigMap` that has the value of one field.
pub(crate) struct Followed {
    kind: &'static str,
    plural: &'static str,
    field: &'static str,
    /// The end of the `ConfigMap`'s name, after that of the custom resource and a hyphen.
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
    /// How long the slowest change took before there was any hostile object.
    slowest: Duration,
}

/// What changes of all neighbours took.
#[derive(Debug)]
struct Measured {
    /// Half of the changes took that long or longer.
    median: Duration,
    slowest: Duration,
    /// Half of the test's own writes, one beside each change, took that long or longer: how slow machine and API server are.
    writes: Duration,
}

impl Neighbours {
    /// Creates the neighbours, waits until they are ready, and measures them.
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
        let own = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": OWN } });
        for (resources, maps) in &homes {
            maps.create(&own).await?;
            resources.create(&resource).await?;
            resources.until_ready(NAME).await?;
        }
        let mut neighbours = Self {
            of,
            homes,
            round: 0,
            slowest: Duration::ZERO,
        };
        let before = neighbours.measure().await?;
        println!("before: {before:?}");
        neighbours.slowest = before.slowest;
        Ok(neighbours)
    }

    /// Checks that the neighbours follow their specs: half of all changes within a second, or as soon as the machine permits, and
    /// none much later than before.
    pub(crate) async fn ensure_followed(&mut self) -> Result<()> {
        let measured = self.measure().await?;
        let soon = SOON.max(measured.writes * WRITES);
        let bound = LEAST.max(self.slowest * FACTOR);
        println!("with it: {measured:?}, bounds {soon:?} and {bound:?}");
        ensure!(
            measured.median <= soon,
            "half of all changes took longer than {soon:?}: {measured:?}"
        );
        ensure!(
            measured.slowest <= bound,
            "a neighbour waited {:?}, and {:?} before",
            measured.slowest,
            self.slowest
        );
        Ok(())
    }

    /// Changes all neighbours at once, a few times, and writes the test's own `ConfigMap`s beside them.
    async fn measure(&mut self) -> Result<Measured> {
        let (mut changes, mut writes) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            self.round += 1;
            let value = json!(format!("n{}", self.round));
            let all = self
                .homes
                .iter()
                .map(|home| async { try_join!(self.change(home, &value), write(&home.1, &value)) });
            for (change, write) in try_join_all(all).await? {
                changes.push(change);
                writes.push(write);
            }
        }
        changes.sort_unstable();
        writes.sort_unstable();
        Ok(Measured {
            median: changes[changes.len() / 2],
            slowest: changes[changes.len() - 1],
            writes: writes[writes.len() / 2],
        })
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

/// Writes the test's own `ConfigMap`, and returns how long that took.
async fn write(maps: &Objects, value: &Value) -> Result<Duration> {
    let started = Instant::now();
    maps.patch(OWN, &json!({ "data": { "value": value } }))
        .await?;
    Ok(started.elapsed())
}
