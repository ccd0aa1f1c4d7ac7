//! Many custom resources of many kinds, and a controller that has finished all work on them.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use serde::Serialize;
use testbed::eventually;

use crate::api;
use crate::options::Sizes;
use crate::process::{Memory, Ork};
use crate::requests::Requests;
use crate::shop::{BLOCKS, Kind, NAMESPACE, Tuning, children_path, is_done, katalog};
use crate::site::Site;
use crate::stats::float;

/// The longest time until all custom resources have converged.
pub(crate) const LIMIT: Duration = Duration::from_mins(20);
/// The time to wait for unexpected writes. It is longer than any delay of a write.
const LATE: Duration = Duration::from_secs(6);

/// Kinds, each with the same number of custom resources and children.
#[derive(Debug, Clone)]
pub(crate) struct Population {
    /// The kinds.
    pub(crate) kinds: Vec<Kind>,
    /// Custom resources of each kind.
    pub(crate) per_kind: usize,
    /// Children of each custom resource: the first of [`BLOCKS`].
    pub(crate) children: usize,
}

impl Population {
    /// Returns the number of all custom resources.
    pub(crate) fn resources(&self) -> usize {
        self.kinds.len() * self.per_kind
    }

    /// Returns the number of all children.
    pub(crate) fn all_children(&self) -> usize {
        self.resources() * self.children
    }

    /// Creates all custom resources, waits until `ork` has finished all work, and returns the seconds that it took.
    pub(crate) async fn create(&self, site: &Site, ork: &mut Ork) -> Result<f64> {
        let started = Instant::now();
        let mut writes = Vec::new();
        // Names are unique across kinds, because the children have the names of their custom resources.
        for (index, kind) in self.kinds.iter().enumerate() {
            let first = index * self.per_kind;
            writes.extend(kind.creations(NAMESPACE, first..first + self.per_kind));
        }
        api::send_all(&site.client, &writes).await?;
        let quiet = ork.until_quiet(float(self.resources()), LIMIT).await?;
        self.until_done(site, ork).await?;
        Ok(quiet.duration_since(started).as_secs_f64())
    }

    /// Waits until each custom resource is done and has its children.
    pub(crate) async fn until_done(&self, site: &Site, ork: &mut Ork) -> Result<()> {
        let done = eventually("all custom resources are done", LIMIT, async || {
            if let Err(ended) = ork.check() {
                return Ok(Some(Err(ended)));
            }
            self.ensure_done(site).await.map(|()| Some(Ok(())))
        });
        done.await?
    }

    async fn ensure_done(&self, site: &Site) -> Result<()> {
        for block in &BLOCKS[..self.children] {
            let path = children_path(&block.to_lowercase(), NAMESPACE);
            let seen = api::count(&site.client, &path).await?;
            ensure!(
                seen >= self.resources(),
                "{seen} {block} of {}",
                self.resources()
            );
        }
        futures::stream::iter(&self.kinds)
            .map(|kind| async move {
                let all = api::get(&site.client, &kind.path_everywhere()).await?;
                let done = all["items"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|one| is_done(one))
                    .count();
                ensure!(
                    done == self.per_kind,
                    "{done} of {} {} are done",
                    self.per_kind,
                    kind.plural()
                );
                Ok(())
            })
            .buffer_unordered(4)
            .try_for_each(|()| async { Ok(()) })
            .await
    }
}

/// Returns one kind with all children and `sizes.crs` converged custom resources, the tuning of its Katalog, and the controller.
pub(crate) async fn converged(
    program: &Path,
    sizes: &Sizes,
) -> Result<(Site, Ork, Population, Tuning)> {
    let site = Site::start(program).await?;
    let population = Population {
        kinds: Kind::some(1),
        per_kind: sizes.crs,
        children: BLOCKS.len(),
    };
    let tuning = Tuning {
        workers: sizes.workers,
        ..Tuning::default()
    };
    let katalogs = [katalog("shops", &population.kinds, &tuning)?];
    let mut ork = site.run(&population.kinds, &katalogs).await?;
    population.create(&site, &mut ork).await?;
    Ok((site, ork, population, tuning))
}

/// The start of a controller with converged objects.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ColdStart {
    /// From its start until it had made a pass over every custom resource and sent its last request.
    pub(crate) seconds: f64,
    /// Its CPU seconds until then, including those for the harness' requests for metrics.
    pub(crate) cpu: f64,
    /// Its requests.
    pub(crate) requests: Requests,
    /// Its memory after the start.
    pub(crate) memory: Memory,
    /// The number of records that it kept.
    pub(crate) records: f64,
}

/// Ends the controller and starts another one with the existing objects.
pub(crate) async fn restart(
    site: &Site,
    mut ork: Ork,
    resources: usize,
) -> Result<(Ork, ColdStart)> {
    ork.terminate()?;
    drop(ork);
    let mark = site.mark()?;
    let mut ork = site.controller().await?;
    let quiet = ork.until_quiet(float(resources), LIMIT).await?;
    let cpu = ork.cpu()?;
    tokio::time::sleep(LATE).await;
    let mut seconds = quiet.duration_since(ork.started()).as_secs_f64();
    if let Some(last) = site.last_request_since(mark)? {
        seconds = seconds.max(ork.seconds_at(last));
    }
    let cold = ColdStart {
        seconds,
        cpu,
        requests: site.requests_since(mark)?,
        memory: ork.memory()?,
        records: ork.metrics().await?.sum("orkestra_cache_records"),
    };
    Ok((ork, cold))
}
