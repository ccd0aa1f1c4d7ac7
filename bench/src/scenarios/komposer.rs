//! A Komposer of many Katalogs from a registry: until its operators run, while nothing changes, and its memory compared with the
//! same Katalogs as objects.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;
use serde_json::{Value, json};
use testbed::eventually;

use super::{Figures, population::LIMIT, promise};
use crate::api::{self, Write};
use crate::options::Sizes;
use crate::process::{Memory, Ork};
use crate::registry::Registry;
use crate::report::{Goal, Row};
use crate::shop::{Kind, NAMESPACE, Tuning, katalogs};
use crate::site::Site;
use crate::stats::float;

/// The seconds between two fetches of a source.
const INTERVAL: u64 = 10;
/// The number of sources that the controller fetches concurrently.
///
/// Source: docs/guides/komposers.md.
const AT_A_TIME: usize = 8;

/// The figures.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sourced {
    /// The number of Katalogs, each with one operator.
    katalogs: usize,
    /// From the request that applies the Komposer until its first operator runs.
    first_seconds: f64,
    /// From the same request until all operators run.
    all_seconds: f64,
    /// The requests to the registry until all operators run.
    first_requests: usize,
    /// The largest number of concurrent requests to the registry in that time.
    at_once: usize,
    /// The seconds of the window in which nothing changes.
    window: u64,
    /// HEAD requests to the registry in the window.
    heads: usize,
    /// Other requests to the registry in the window.
    others: usize,
    /// Writes to the API server in the window.
    writes: usize,
    /// CPU seconds in the window.
    cpu: f64,
    /// The memory of a controller without Katalogs.
    empty: Memory,
    /// The memory of a controller that was started with the Komposer.
    composed: Memory,
    /// The memory of a controller that was started with the same Katalogs as objects.
    declared: Memory,
}

// Over 60 lines: a scenario, one measurement after the other.
pub(crate) async fn run(program: &Path, sizes: &Sizes) -> Result<Sourced> {
    let site = Site::start(program).await?;
    let kinds = Kind::some(sizes.sources);
    let katalogs = katalogs(&kinds, 1, &Tuning::default())?;
    site.install(&kinds).await?;
    site.grant(&katalogs, &kinds).await?;
    let registry = Registry::start().await?;
    for katalog in &katalogs {
        let mut document = katalog.clone();
        document["metadata"] = json!({ "name": api::name(katalog) });
        registry.publish(&repository(katalog), &document.to_string());
    }
    let settle = Duration::from_secs(sizes.settle.min(10));
    let mut ork = controller(&site).await?;
    ork.until_quiet(0.0, LIMIT).await?;
    tokio::time::sleep(settle).await;
    let empty = ork.memory()?;

    registry.seen();
    let started = Instant::now();
    Write::apply(&komposer_path(), &komposer(&registry, &katalogs))
        .send(&site.client)
        .await?;
    let first_seconds = until_running(&mut ork, 1, started).await?;
    let all_seconds = until_running(&mut ork, kinds.len(), started).await?;
    let first = registry.seen();
    ork.until_quiet(0.0, LIMIT).await?;
    ork.terminate()?;

    let mut ork = controller(&site).await?;
    site.until_all_run(&mut ork, kinds.len()).await?;
    ork.until_quiet(0.0, LIMIT).await?;
    tokio::time::sleep(settle.max(Duration::from_secs(8))).await;
    let (mark, cpu) = (site.mark()?, ork.cpu()?);
    registry.seen();
    tokio::time::sleep(Duration::from_secs(sizes.quiet)).await;
    let seen = registry.seen();
    let cpu = ork.cpu()? - cpu;
    let writes = site.requests_since(mark)?.written;
    let composed = ork.memory()?;
    Write::delete(&komposer_path()).send(&site.client).await?;
    eventually("the Komposer is gone", LIMIT, async || {
        let there = api::get(&site.client, &komposer_path()).await.is_ok();
        Ok((!there).then_some(()))
    })
    .await?;
    ork.terminate()?;

    Ok(Sourced {
        katalogs: kinds.len(),
        first_seconds,
        all_seconds,
        first_requests: first.by.values().sum(),
        at_once: first.most,
        window: sizes.quiet,
        heads: seen.by.get("HEAD").copied().unwrap_or_default(),
        others: seen
            .by
            .iter()
            .filter(|(method, _)| *method != "HEAD")
            .map(|(_, count)| count)
            .sum(),
        writes,
        cpu,
        empty,
        composed,
        declared: declared(&site, &katalogs).await?,
    })
}

/// Returns the memory of a controller that was started with the Katalogs as objects.
async fn declared(site: &Site, katalogs: &[Value]) -> Result<Memory> {
    let mut first = controller(site).await?;
    site.apply_katalogs(katalogs).await?;
    site.until_running(&mut first, katalogs).await?;
    first.terminate()?;
    let mut ork = controller(site).await?;
    site.until_all_run(&mut ork, katalogs.len()).await?;
    ork.until_quiet(0.0, LIMIT).await?;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let memory = ork.memory()?;
    ork.terminate()?;
    Ok(memory)
}

async fn controller(site: &Site) -> Result<Ork> {
    site.controller_plus("--source-allow=http://127.0.0.0/8")
        .await
}

fn komposer_path() -> String {
    format!("/apis/orkestra.orkspace.io/v1/namespaces/{NAMESPACE}/komposers/all")
}

fn repository(katalog: &Value) -> String {
    format!("bench/{}", api::name(katalog))
}

fn komposer(registry: &Registry, katalogs: &[Value]) -> Value {
    let source = |katalog: &Value| {
        let url = format!("oci://{}/{}:stable", registry.host, repository(katalog));
        json!({ "url": url })
    };
    let sources: Vec<Value> = katalogs.iter().map(source).collect();
    json!({
        "apiVersion": "orkestra.orkspace.io/v1",
        "kind": "Komposer",
        "metadata": { "name": "all", "namespace": NAMESPACE },
        "spec": { "interval": format!("{INTERVAL}s"), "sources": { "registry": sources }, "crds": {} },
    })
}

/// Waits until this number of operators runs, as reported by the controller's own page. Returns the seconds since `started`.
async fn until_running(ork: &mut Ork, operators: usize, started: Instant) -> Result<f64> {
    loop {
        ork.check()?;
        let page: Value = serde_json::from_str(&ork.get("/katalog").await?)?;
        let counts = ["started", "healthy"].map(|state| page["statusCounts"][state].as_u64());
        let running: u64 = counts.into_iter().flatten().sum();
        if usize::try_from(running)? >= operators {
            return Ok(started.elapsed().as_secs_f64());
        }
        ensure!(
            started.elapsed() < LIMIT,
            "{running} of {operators} operators run: {}",
            page["katalogs"]
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Sourced {
    /// Returns the number of requests per source and interval.
    fn rate(&self, requests: usize) -> f64 {
        float(requests)
            / float(self.katalogs)
            / (Duration::from_secs(self.window).as_secs_f64()
                / Duration::from_secs(INTERVAL).as_secs_f64())
    }

    /// Returns the kilobytes of heap for each operator.
    fn each(&self, memory: &Memory) -> f64 {
        (memory.heap_mb - self.empty.heap_mb) * 1e3 / float(self.katalogs)
    }
}

impl Figures for Sourced {
    fn title(&self) -> String {
        format!(
            "a Komposer of {} Katalogs from a registry, checked every {INTERVAL} s",
            self.katalogs
        )
    }

    fn rows(&self) -> Vec<Row> {
        vec![
            Row::new("until the first operator runs", "s", self.first_seconds)
                .goal(Goal::AtMost(2.0)),
            Row::new("until all operators run", "s", self.all_seconds),
            Row::new(
                "requests to the registry per source until then",
                "",
                float(self.first_requests) / float(self.katalogs),
            ),
            Row::new("of these at the same time", "", float(self.at_once)),
            Row::new(
                "requests per source and interval, unchanged",
                "",
                self.rate(self.heads + self.others),
            ),
            Row::new("writes in the quiet time", "", float(self.writes)).goal(Goal::AtMost(0.0)),
            Row::new("CPU in the quiet time", "s", self.cpu),
            Row::new(
                "heap per composed operator",
                "KB",
                self.each(&self.composed),
            )
            .beside(self.each(&self.declared)),
        ]
    }

    fn broken(&self) -> Vec<String> {
        // Intervals are shortened by up to a tenth, and the window may begin just before a fetch.
        let intervals = usize::try_from(self.window / INTERVAL).unwrap_or_default();
        let most = self.katalogs * (intervals * 10 / 9 + 2);
        let kept = [
            promise(self.writes == 0, || {
                format!("{} writes in the quiet time", self.writes)
            }),
            promise(self.others == 0, || {
                format!(
                    "{} requests for unchanged sources besides HEAD",
                    self.others
                )
            }),
            promise(self.heads <= most, || {
                format!("{} HEAD requests, at most {most} are due", self.heads)
            }),
            promise(self.at_once >= AT_A_TIME.min(self.katalogs), || {
                format!(
                    "at most {} sources are fetched at the same time",
                    self.at_once
                )
            }),
        ];
        kept.into_iter().flatten().collect()
    }
}
