//! The duration of one change at a time: from a changed spec to the applied child, and from a deleted child to its recreation.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Figures, population::Population, promise, spec_patch};
use crate::api::{self, Write};
use crate::bare::{self, By, What};
use crate::options::Sizes;
use crate::report::{Goal, Row};
use crate::requests::Requests;
use crate::shop::{BLOCKS, Child, Kind, NAMESPACE, Tuning, katalog, resource_name};
use crate::site::Site;
use crate::stats::{Percentiles, float};
use crate::watch::{ObjectChange as Seen, Watch};

/// The number of custom resources. The samples use them in turn.
const RESOURCES: usize = 100;
/// The longest time that one change may take.
const LIMIT: Duration = Duration::from_mins(1);
/// The pause between two samples, so that late effects of the first one, such as its Event, are over.
const PAUSE: Duration = Duration::from_millis(20);
/// The namespace of the custom resources that only the harness handles.
const BARE: &str = "bare";

/// The figures, in milliseconds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    /// The number of samples of each kind.
    samples: usize,
    /// From the answer to a patch of the custom resource until the watch reports the change of its Deployment.
    spec: Percentiles,
    /// The same if the harness applies the Deployment.
    bare_spec: Percentiles,
    /// From the answer to the deletion of a `ConfigMap` until the watch reports a new one.
    drift: Percentiles,
    /// The same if the harness applies the `ConfigMap`.
    bare_drift: Percentiles,
    /// The requests of `ork`.
    requests: Requests,
}

pub(crate) async fn run(program: &Path, sizes: &Sizes) -> Result<Change> {
    let site = Site::start(program).await?;
    let (own, plain) = (Kind::numbered(0), Kind::without_operator());
    let population = Population {
        kinds: vec![own.clone()],
        per_kind: RESOURCES,
        children: BLOCKS.len(),
    };
    let tuning = Tuning {
        workers: sizes.workers,
        ..Tuning::default()
    };
    let katalogs = [katalog("shops", &population.kinds, &tuning)?];
    site.install(std::slice::from_ref(&plain)).await?;
    let mut ork = site.run(&population.kinds, &katalogs).await?;
    population.create(&site, &mut ork).await?;
    bare::make(&site, What::Instances(By::Apply), BARE, RESOURCES).await?;

    let mark = site.mark()?;
    let specs = spec_changes(&site, &own, &plain, sizes.samples).await?;
    let drifts = drifts(&site, sizes.samples).await?;
    ork.check()?;
    let none = "no sample was taken: --samples 0?";
    Ok(Change {
        samples: sizes.samples,
        spec: Percentiles::of(specs.0).context(none)?,
        bare_spec: Percentiles::of(specs.1).context(none)?,
        drift: Percentiles::of(drifts.0).context(none)?,
        bare_drift: Percentiles::of(drifts.1).context(none)?,
        requests: site.requests_since(mark)?,
    })
}

/// Measures `ork` and the harness alternately, so that both run under the same conditions. Returns the durations of both.
async fn spec_changes(
    site: &Site,
    own: &Kind,
    plain: &Kind,
    samples: usize,
) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let deployment = child(site, "deployments")?;
    let client = &site.client;
    let mut watch = Watch::open(client, &deployment.path(NAMESPACE)).await?;
    let mut bare_watch = Watch::open(client, &deployment.path(BARE)).await?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for sample in 0..samples {
        let name = resource_name(sample % RESOURCES);
        let image = format!("registry.example/shop:{}", sample + 2);
        let patch = |kind: &Kind, namespace: &str| {
            Write::merge(
                &format!("{}/{name}", kind.path(namespace)),
                &spec_patch("image", &image),
            )
        };
        let is_it = |seen: &Seen| matches!(seen, Seen::Put(object) if api::name(object) == name && image_of(object) == image);

        let mut object = deployment.object(BARE, &name)?;
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        ensure!(
            image_of(&object) == image,
            "the Deployment has no container"
        );
        let apply = Write::apply(&format!("{}/{name}", deployment.path(BARE)), &object);
        patch(plain, BARE).send(client).await?;
        let started = Instant::now();
        apply.send(client).await?;
        let seen = bare_watch
            .until("the harness' Deployment has changed", LIMIT, is_it)
            .await?;
        without.push(seen.duration_since(started));
        tokio::time::sleep(PAUSE).await;

        patch(own, NAMESPACE).send(client).await?;
        let started = Instant::now();
        let seen = watch
            .until("the Deployment has changed", LIMIT, is_it)
            .await?;
        with.push(seen.duration_since(started));
        tokio::time::sleep(PAUSE).await;
    }
    Ok((with, without))
}

async fn drifts(site: &Site, samples: usize) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let map = child(site, "configmaps")?;
    let client = &site.client;
    let mut watch = Watch::open(client, &map.path(NAMESPACE)).await?;
    let mut bare_watch = Watch::open(client, &map.path(BARE)).await?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for sample in 0..samples {
        let name = resource_name(sample % RESOURCES);
        let delete = |namespace: &str| Write::delete(&format!("{}/{name}", map.path(namespace)));

        let apply = map.apply(BARE, &name)?;
        delete(BARE).send(client).await?;
        let started = Instant::now();
        apply.send(client).await?;
        let seen = bare_watch
            .until("the harness' ConfigMap is back", LIMIT, is_back(&name))
            .await?;
        without.push(seen.duration_since(started));
        tokio::time::sleep(PAUSE).await;

        delete(NAMESPACE).send(client).await?;
        let started = Instant::now();
        let seen = watch
            .until("the ConfigMap is back", LIMIT, is_back(&name))
            .await?;
        with.push(seen.duration_since(started));
        tokio::time::sleep(PAUSE).await;
    }
    Ok((with, without))
}

/// Returns a check that is true once the object with this name was deleted and created again.
fn is_back(name: &str) -> impl FnMut(&Seen) -> bool {
    let mut gone = false;
    move |seen| match seen {
        Seen::Gone(object) if api::name(object) == name => {
            gone = true;
            false
        }
        Seen::Put(object) => gone && api::name(object) == name,
        Seen::Gone(_) => false,
    }
}

fn child<'a>(site: &'a Site, collection: &str) -> Result<&'a Child> {
    let mut all = site.children.iter();
    all.find(|child| child.collection() == collection)
        .with_context(|| format!("katalog.yaml has no {collection}"))
}

fn image_of(deployment: &Value) -> &str {
    api::text(deployment, "/spec/template/spec/containers/0/image")
}

impl Figures for Change {
    fn title(&self) -> String {
        format!(
            "{} changes one after the other; from the answer to the harness until the child is seen",
            self.samples
        )
    }

    fn rows(&self) -> Vec<Row> {
        let row = |name: &str, value: f64, bare: f64| Row::new(name, "ms", value).beside(bare);
        let (spec, drift) = (self.spec, self.drift);
        vec![
            row(
                "spec change → Deployment, p50",
                spec.p50,
                self.bare_spec.p50,
            )
            .goal(Goal::OverBare(0.5)),
            row(
                "spec change → Deployment, p99",
                spec.p99,
                self.bare_spec.p99,
            )
            .goal(Goal::OverBare(3.0)),
            row(
                "deleted ConfigMap → back, p50",
                drift.p50,
                self.bare_drift.p50,
            ),
            row(
                "deleted ConfigMap → back, p99",
                drift.p99,
                self.bare_drift.p99,
            )
            .goal(Goal::OverBare(3.0)),
            Row::new(
                "writes per change",
                "",
                float(self.requests.writes) / float(2 * self.samples),
            ),
        ]
    }

    fn broken(&self) -> Vec<String> {
        // A changed spec needs two writes: the child and the generation in the status. A deleted child needs one.
        let needed = 3 * self.samples;
        let kept = self.requests.total - self.requests.watches <= needed;
        promise(kept, || {
            format!("{needed} requests are needed: {:?}", self.requests.by)
        })
        .into_iter()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_that_went_and_came_is_back() {
        let object = |name: &str| json!({ "metadata": { "name": name } });
        let mut is_it = is_back("a");
        assert!(!is_it(&Seen::Put(object("a"))), "not deleted yet");
        assert!(!is_it(&Seen::Gone(object("b"))));
        assert!(!is_it(&Seen::Put(object("a"))));
        assert!(!is_it(&Seen::Gone(object("a"))));
        assert!(!is_it(&Seen::Put(object("b"))));
        assert!(is_it(&Seen::Put(object("a"))));
    }
}
