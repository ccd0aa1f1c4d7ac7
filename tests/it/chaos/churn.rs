//! Users: they create, change and delete ponds and lakes, edit the Katalog, and change or delete children.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use testbed::eventually;

use super::GROUP;
use crate::scenario::{Objects, code, is_ready, pause};
use crate::waters;

const PONDS: usize = 14;
const LAKES: usize = 5;
/// The time for which a user retries a request that the API server does not answer.
const PATIENCE: Duration = Duration::from_mins(3);
/// The pause between two steps.
const PAUSE: Duration = Duration::from_millis(120);

/// The state that the users want.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Specs of the ponds by name.
    pub(crate) ponds: BTreeMap<String, Value>,
    /// Specs of the lakes by name.
    pub(crate) lakes: BTreeMap<String, Value>,
    /// The edition of the Katalog.
    pub(crate) edition: u64,
}

/// The objects that users work on. Their requests do not pass a proxy.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) ponds: Objects,
    pub(crate) lakes: Objects,
    pub(crate) katalogs: Objects,
    pub(crate) maps: Objects,
    pub(crate) far: Objects,
    pub(crate) deployments: Objects,
    pub(crate) jobs: Objects,
    pub(crate) leases: Objects,
    pub(crate) katalog: String,
}

impl Place {
    /// Returns the text of the Katalog in that edition.
    pub(crate) fn katalog_text(&self, edition: u64) -> String {
        self.katalog.replace("EDITION", &format!("e{edition}"))
    }

    /// Returns the Katalog in that edition, parsed.
    pub(crate) fn katalog(&self, edition: u64) -> Result<Value> {
        Ok(serde_saphyr::from_str(&self.katalog_text(edition))?)
    }
}

/// The users, whose steps are random with a seed.
pub(crate) struct Churn {
    place: Place,
    dice: StdRng,
    steps: u64,
    pub(crate) wanted: Wanted,
    /// The number of times that an object of that name was created.
    pub(crate) made: BTreeMap<String, usize>,
    /// The number of successful actions, by name.
    pub(crate) done: BTreeMap<&'static str, u64>,
}

impl Churn {
    /// Returns users before their first step: only the Katalog exists, in edition 0.
    pub(crate) fn new(place: Place, seed: u64) -> Self {
        Self {
            place,
            dice: StdRng::seed_from_u64(seed),
            steps: 0,
            wanted: Wanted::default(),
            made: BTreeMap::new(),
            done: BTreeMap::new(),
        }
    }

    /// Runs steps until `ended`.
    pub(crate) async fn run(mut self, ended: tokio::sync::watch::Receiver<bool>) -> Result<Self> {
        while !*ended.borrow() {
            self.step().await?;
            pause(PAUSE).await;
        }
        Ok(self)
    }

    async fn step(&mut self) -> Result<()> {
        self.steps += 1;
        match self.dice.random_range(0..100) {
            0..50 => self.change("Pond").await,
            50..65 => self.change("Lake").await,
            65..68 => self.edit_katalog().await,
            68..76 => self.delete_a_job().await,
            _ => self.meddle().await,
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.done.entry(what).or_default() += 1;
    }

    /// Creates, changes or deletes a pond or lake.
    async fn change(&mut self, kind: &'static str) -> Result<()> {
        let (objects, prefix, most) = match kind {
            "Pond" => (self.place.ponds.clone(), "p", PONDS),
            _ => (self.place.lakes.clone(), "l", LAKES),
        };
        let name = format!("{prefix}{:02}", self.dice.random_range(0..most));
        let deep = if self.dice.random() { "yes" } else { "no" };
        let spec = json!({ "colour": format!("c{}", self.steps), "deep": deep });
        let is_there = self.of(kind).contains_key(&name);
        if is_there && self.dice.random_ratio(1, 5) {
            delete(&objects, &name).await?;
            self.of(kind).remove(&name);
            self.count("deleted");
        } else if is_there {
            let patch = json!({ "spec": spec });
            surely(&format!("{name} is changed"), async || {
                objects.patch(&name, &patch).await
            })
            .await?;
            self.of(kind).insert(name, spec);
            self.count("changed");
        } else if create(&objects, kind, &name, &spec).await? {
            *self.made.entry(name.clone()).or_default() += 1;
            self.of(kind).insert(name, spec);
            self.count("created");
        }
        Ok(())
    }

    fn of(&mut self, kind: &str) -> &mut BTreeMap<String, Value> {
        match kind {
            "Pond" => &mut self.wanted.ponds,
            _ => &mut self.wanted.lakes,
        }
    }

    async fn edit_katalog(&mut self) -> Result<()> {
        let edition = self.wanted.edition + 1;
        let patch = json!({ "spec": self.place.katalog(edition)?["spec"] });
        let katalogs = self.place.katalogs.clone();
        surely("the Katalog is edited", async || {
            katalogs.patch("waters", &patch).await
        })
        .await?;
        self.wanted.edition = edition;
        self.count("katalog edited");
        Ok(())
    }

    /// Changes or deletes a child directly. The attempt may fail: the child may not exist, and the API server may not answer.
    async fn meddle(&mut self) -> Result<()> {
        let ponds: Vec<_> = self.wanted.ponds.keys().cloned().collect();
        let Some(pond) = ponds.choose(&mut self.dice).cloned() else {
            return Ok(());
        };
        let place = self.place.clone();
        let colour = json!({ "data": { "colour": format!("x{}", self.steps) } });
        let more = json!({ "spec": { "replicas": 3 } });
        let unlabelled =
            json!({ "metadata": { "labels": { "orkestra.orkspace.io/managed": null } } });
        let (kept, far) = (format!("{pond}-kept"), format!("{pond}-far"));
        let done = match self.dice.random_range(0..7) {
            0 => place.maps.patch(&kept, &colour).await.map(drop),
            1 => place.maps.delete(&kept).await,
            2 => place.far.patch(&far, &colour).await.map(drop),
            3 => place.far.delete(&far).await,
            4 => place.deployments.delete(&pond).await,
            5 => place.deployments.patch(&pond, &more).await.map(drop),
            _ => place.maps.patch(&kept, &unlabelled).await.map(drop),
        };
        if done.is_ok() {
            self.count("meddled");
        }
        Ok(())
    }

    /// Deletes a Job that the pond's inventory lists: the controller must not create it again.
    async fn delete_a_job(&mut self) -> Result<()> {
        let ponds: Vec<_> = self.wanted.ponds.keys().cloned().collect();
        let Some(pond) = ponds.choose(&mut self.dice) else {
            return Ok(());
        };
        let job = format!("{pond}-fill");
        let inventory = "/metadata/annotations/orkestra.orkspace.io~1inventory";
        let Ok(Some(found)) = self.place.ponds.get(pond).await else {
            return Ok(());
        };
        let is_reported = waters::text(&found, inventory).contains(&format!("/{job}"));
        if is_reported && is_ready(&found) && self.place.jobs.delete(&job).await.is_ok() {
            self.count("jobs deleted");
        }
        Ok(())
    }
}

/// Retries a request until the API server reports success.
async fn surely<T>(what: &str, ask: impl AsyncFn() -> Result<T>) -> Result<T> {
    eventually(what, PATIENCE, async || match ask().await {
        // A retry would get the same answer.
        Err(error) if matches!(code(&error), Some(400 | 403 | 422)) => Ok(Some(Err(error))),
        other => other.map(|value| Some(Ok(value))),
    })
    .await?
}

/// Returns true for a 404 that names the object: an API server that has just started may not know the kind yet.
fn is_absent(error: &anyhow::Error, name: &str) -> bool {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) if status.code == 404 => {
            let details = status.details.as_ref();
            details.is_some_and(|details| details.name == name)
        }
        _ => false,
    }
}

async fn delete(objects: &Objects, name: &str) -> Result<()> {
    surely(&format!("{name} is deleted"), async || {
        match objects.delete(name).await {
            Err(error) if is_absent(&error, name) => Ok(()),
            other => other,
        }
    })
    .await
}

/// Creates an object; returns false if its predecessor is still being deleted.
async fn create(objects: &Objects, kind: &str, name: &str, spec: &Value) -> Result<bool> {
    let wanted = json!({
        "apiVersion": format!("{GROUP}/v1alpha1"), "kind": kind,
        "metadata": { "name": name }, "spec": spec,
    });
    surely(&format!("{name} is created"), async || {
        let Err(error) = objects.create(&wanted).await else {
            return Ok(true);
        };
        if code(&error) != Some(409) {
            return Err(error);
        }
        // An earlier attempt may have created it, and its answer was lost.
        let found = objects.get(name).await?.context("it is already deleted")?;
        match found["metadata"]["deletionTimestamp"].is_string() {
            true => Ok(false),
            false if found["spec"] == *spec => Ok(true),
            false => bail!("{name} exists with {}", found["spec"]),
        }
    })
    .await
}
