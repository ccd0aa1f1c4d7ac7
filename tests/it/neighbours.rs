//! Custom resources beside hostile objects: how soon each follows its spec, before there is any hostile object and with it.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::scenario::{LIMIT, Objects, Scenario};
use crate::waters;

/// How soon half of all changes are followed.
const SOON: Duration = Duration::from_secs(1);
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
        println!("before: the median is {median:?}, the slowest {slowest:?}");
        neighbours.slowest = slowest;
        Ok(neighbours)
    }

    /// Checks that the neighbours follow their specs: half of all changes within a second, and none much later than before.
    pub(crate) async fn ensure_followed(&mut self) -> Result<()> {
        let (median, slowest) = self.measure().await?;
        let bound = LEAST.max(self.slowest * FACTOR);
        println!("with it: the median is {median:?}, the slowest {slowest:?} of {bound:?}");
        ensure!(
            median <= SOON,
            "half of all changes took {median:?} or more"
        );
        ensure!(
            slowest <= bound,
            "a neighbour waited {slowest:?}, and {:?} before",
            self.slowest
        );
        Ok(())
    }

    /// Changes all neighbours at once, a few times; returns the median and the longest of the times until they were followed.
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
