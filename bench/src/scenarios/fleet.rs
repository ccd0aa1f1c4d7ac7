//! Many operators with many children: memory, a cold start, a burst and a relist.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;
use serde_json::Value;
use testbed::eventually;

use super::{
    Figures,
    population::{ColdStart, LIMIT, Population, restart},
    promise, spec_patch,
};
use crate::api::{self, Write};
use crate::options::Sizes;
use crate::process::{Memory, Ork};
use crate::report::{Goal, Row};
use crate::shop::{BLOCKS, Kind, NAMESPACE, Tuning, children_path, katalogs, resource_name};
use crate::site::Site;
use crate::stats::float;
use crate::watch::Watch;

/// The number of operators in one Katalog.
const A_KATALOG: usize = 5;
/// The limit of the memory after a burst or a relist, in percent of the steady memory.
const GIVEN_BACK: f64 = 110.0;

/// The figures.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fleet {
    /// The number of operators.
    operators: usize,
    /// The number of custom resources.
    crs: usize,
    /// The number of children.
    children: usize,
    /// From the first POST until all custom resources were done.
    create_seconds: f64,
    /// The memory of the controller that created the children.
    after_create: Memory,
    /// The start of a controller with existing objects.
    cold: ColdStart,
    /// The memory of that controller after it has settled.
    steady: Memory,
    /// Seconds until a change of every custom resource was done.
    burst_seconds: f64,
    /// The memory after the burst, once it has settled.
    after_burst: Memory,
    /// The number of operators that listed their custom resources after their watches had expired.
    relists: usize,
    /// The memory after the relist, once it has settled.
    after_relist: Memory,
}

pub(crate) async fn run(program: &Path, sizes: &Sizes) -> Result<Fleet> {
    let site = Site::start(program).await?;
    let population = Population {
        kinds: Kind::some(sizes.operators),
        per_kind: sizes.per_operator,
        children: BLOCKS.len(),
    };
    let settle = Duration::from_secs(sizes.settle);
    let tuning = Tuning {
        workers: sizes.workers,
        ..Tuning::default()
    };
    let katalogs = katalogs(&population.kinds, A_KATALOG, &tuning)?;
    let mut ork = site.run(&population.kinds, &katalogs).await?;
    let create_seconds = population.create(&site, &mut ork).await?;
    // Wait until the Katalogs' statuses contain the counts.
    tokio::time::sleep(settle.max(Duration::from_secs(6))).await;
    let after_create = ork.memory()?;

    let (mut ork, cold) = restart(&site, ork, population.resources()).await?;
    tokio::time::sleep(settle).await;
    let steady = ork.memory()?;

    let burst_seconds = burst(&site, &mut ork, &population).await?;
    tokio::time::sleep(settle).await;
    let after_burst = ork.memory()?;

    let relists = relist(&site, &mut ork, population.kinds.len()).await?;
    tokio::time::sleep(settle).await;
    ork.check()?;
    Ok(Fleet {
        operators: population.kinds.len(),
        crs: population.resources(),
        children: population.all_children(),
        create_seconds,
        after_create,
        cold,
        steady,
        burst_seconds,
        after_burst,
        relists,
        after_relist: ork.memory()?,
    })
}

/// Changes every custom resource, waits until every `ConfigMap` has the change, and returns the seconds that it took.
async fn burst(site: &Site, ork: &mut Ork, population: &Population) -> Result<f64> {
    let mut watch = Watch::open(&site.client, &children_path("configmaps", NAMESPACE)).await?;
    let mut writes = Vec::new();
    for (index, kind) in population.kinds.iter().enumerate() {
        for number in index * population.per_kind..(index + 1) * population.per_kind {
            let path = format!("{}/{}", kind.path(NAMESPACE), resource_name(number));
            writes.push(Write::merge(&path, &spec_patch("message", "closed")));
        }
    }
    let follows = |object: &Value| api::text(object, "/data/message") == "closed";
    let started = Instant::now();
    let (_, seen) = tokio::try_join!(
        api::send_all(&site.client, &writes),
        watch.until_all(
            "all ConfigMaps have the change",
            LIMIT,
            population.resources(),
            follows
        )
    )?;
    ork.until_quiet(0.0, LIMIT).await?;
    Ok(seen.duration_since(started).as_secs_f64())
}

/// Kills and restarts the API server, so that it loses its watch cache and answers 410 to watches that continue at an earlier
/// resourceVersion. Returns the number of operators that have listed their custom resources again, once all `operators` have.
async fn relist(site: &Site, ork: &mut Ork, operators: usize) -> Result<usize> {
    let mark = site.mark()?;
    // Increase the store's revision beyond the one that the watches have seen.
    site.namespace("meanwhile").await?;
    tokio::task::block_in_place(|| {
        site.cluster.stop_api_server()?;
        site.cluster.start_api_server()
    })?;
    let lists = || -> Result<usize> {
        let by = site.requests_since(mark)?.by;
        let of = |name: &str| by.get(&format!("list {name}")).copied().unwrap_or_default();
        Ok((0..operators)
            .map(|number| of(&Kind::numbered(number).plural()))
            .filter(|count| *count > 0)
            .count())
    };
    let seen = eventually("every operator has listed again", LIMIT, async || {
        ork.check()?;
        let seen = lists()?;
        ensure!(seen == operators, "{seen} of {operators} have listed");
        Ok(Some(seen))
    })
    .await?;
    ork.until_quiet(0.0, LIMIT).await?;
    Ok(seen)
}

impl Figures for Fleet {
    fn title(&self) -> String {
        format!(
            "{} operators, {} custom resources, {} children",
            self.operators, self.crs, self.children
        )
    }

    fn rows(&self) -> Vec<Row> {
        let cold = &self.cold;
        let mut rows = vec![
            Row::new("until all were done", "s", self.create_seconds),
            Row::new("RSS after that", "MB", self.after_create.rss_mb),
            Row::new("RSS, steady", "MB", self.steady.rss_mb).goal(Goal::AtMost(20.0)),
            Row::new("heap, steady", "MB", self.steady.heap_mb),
            Row::new("RSS, peak at cold start", "MB", cold.memory.peak_mb).goal(Goal::AtMost(40.0)),
        ];
        rows.extend(cold_rows(cold, 0.5));
        rows.extend([
            Row::new("a change of all custom resources", "s", self.burst_seconds),
            Row::new(
                "RSS after that burst, of the steady one",
                "%",
                percent(self.after_burst, self.steady),
            )
            .goal(Goal::AtMost(GIVEN_BACK)),
            Row::new(
                "RSS after a relist (410), of the steady one",
                "%",
                percent(self.after_relist, self.steady),
            )
            .goal(Goal::AtMost(GIVEN_BACK)),
        ]);
        rows
    }

    fn broken(&self) -> Vec<String> {
        let mut broken = cold_broken(&self.cold);
        for (what, now) in [("burst", self.after_burst), ("relist", self.after_relist)] {
            let held = percent(now, self.steady);
            broken.extend(promise(held <= GIVEN_BACK, || {
                format!("after a {what} it holds {held:.0} % of its steady memory")
            }));
        }
        broken
    }
}

fn percent(now: Memory, steady: Memory) -> f64 {
    now.rss_mb / steady.rss_mb * 100.0
}

/// Returns the rows of a cold start. `seconds` is the goal.
pub(crate) fn cold_rows(cold: &ColdStart, seconds: f64) -> [Row; 4] {
    [
        Row::new("cold start until quiet", "s", cold.seconds).goal(Goal::AtMost(seconds)),
        Row::new("CPU of the cold start", "s", cold.cpu),
        Row::new("requests of the cold start", "", float(cold.requests.total)),
        Row::new("writes of the cold start", "", float(cold.requests.written))
            .goal(Goal::AtMost(0.0)),
    ]
}

/// A cold start with converged objects must write nothing.
pub(crate) fn cold_broken(cold: &ColdStart) -> Vec<String> {
    let wrote = promise(cold.requests.written == 0, || {
        format!("the cold start wrote: {:?}", cold.requests.by)
    });
    wrote.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::Requests;

    #[test]
    fn memory_that_a_burst_or_a_relist_leaves_behind_is_a_broken_promise() {
        let memory = |rss_mb| Memory {
            rss_mb,
            peak_mb: rss_mb,
            heap_mb: rss_mb,
            threads: 3,
        };
        let fleet = |after_burst, after_relist| Fleet {
            operators: 1,
            crs: 1,
            children: 1,
            create_seconds: 1.0,
            after_create: memory(30.0),
            cold: ColdStart {
                seconds: 0.1,
                cpu: 0.1,
                requests: Requests::default(),
                memory: memory(20.0),
                records: 2.0,
            },
            steady: memory(20.0),
            burst_seconds: 1.0,
            after_burst: memory(after_burst),
            relists: 1,
            after_relist: memory(after_relist),
        };
        assert_eq!(fleet(21.9, 19.0).broken(), Vec::<String>::new());
        assert_eq!(
            fleet(20.0, 23.0).broken(),
            ["after a relist it holds 115 % of its steady memory"]
        );
        assert_eq!(fleet(23.0, 23.0).broken().len(), 2);
    }
}
