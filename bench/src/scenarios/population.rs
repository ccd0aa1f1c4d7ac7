//! Many custom resources of many kinds, and a controller that has done all it can for them.

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

/// How long a whole population may take to converge.
pub(crate) const LIMIT: Duration = Duration::from_mins(20);
/// How long writes are waited for that nothing should lead to: longer than any of them is put off.
const LATE: Duration = Duration::from_secs(6);

/// Kinds, each with the same number of custom resources, and children of each.
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
    /// All custom resources.
    pub(crate) fn resources(&self) -> usize {
        self.kinds.len() * self.per_kind
    }

    /// All children.
    pub(crate) fn all_children(&self) -> usize {
        self.resources() * self.children
    }

    /// Creates them all and waits until `ork` has done all it can; seconds.
    pub(crate) async fn create(&self, site: &Site, ork: &mut Ork) -> Result<f64> {
        let started = Instant::now();
        let mut writes = Vec::new();
        // No two of one name, whatever their kinds: their children carry it.
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

/// One kind with all children and `sizes.crs` custom resources that are as declared, by which tuning, and their controller.
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

/// A controller that was started over a converged world.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ColdStart {
    /// From its start until it had made a pass over every custom resource and asked for nothing more.
    pub(crate) seconds: f64,
    /// Its CPU seconds until then, and those of what it measured of itself.
    pub(crate) cpu: f64,
    /// What it asked for.
    pub(crate) requests: Requests,
    /// What it held then.
    pub(crate) memory: Memory,
    /// Objects that it kept records of.
    pub(crate) records: f64,
}

/// Ends the controller and starts another over what stands.
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
