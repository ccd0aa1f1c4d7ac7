//! Many custom resources at once, until each has its children and its status.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::{Figures, population::LIMIT, promise};
use crate::process::{Memory, Ork};
use crate::report::{Goal, Row};
use crate::requests::Requests;
use crate::shop::{BLOCKS, Child, Kind, NAMESPACE, Tuning, is_done, katalog};
use crate::site::Site;
use crate::stats::float;
use crate::watch::Watch;
use crate::{api, bare, options::Sizes};

/// Custom resources that are made before anything is measured: connections, caches.
const WARM: usize = 20;
/// Children of one custom resource.
const CHILDREN: usize = BLOCKS.len();
/// Heap that a record may take, in bytes: generous, for debug builds and few records.
const BYTES_A_RECORD: f64 = 6e3;
/// The same by `ork`'s own account, which does not depend on the allocator.
const COUNTED_BYTES_A_RECORD: f64 = 1e3;

/// The figures.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Create {
    /// Custom resources.
    crs: usize,
    /// From the first POST of a custom resource until the last was done.
    seconds: f64,
    /// How much of that the harness took to POST them.
    post_seconds: f64,
    /// CPU seconds of `ork`.
    cpu: f64,
    /// CPU seconds of etcd and the API server meanwhile.
    servers_cpu: f64,
    /// The children alone by the harness, by apply: before and after.
    bare_seconds: [f64; 2],
    /// CPU seconds of the servers for those.
    bare_servers_cpu: [f64; 2],
    /// The same by POST.
    bare_post_seconds: f64,
    /// All that `ork` writes, and the custom resources, by the harness.
    bare_everything_seconds: f64,
    /// What `ork` asked for.
    requests: Requests,
    /// Different statuses that the custom resources had, all in all.
    states: usize,
    /// Records kept before and after.
    records: [f64; 2],
    /// Bytes of those by `ork`'s own account, if it keeps one.
    record_bytes: Option<[f64; 2]>,
    /// What it held before and after.
    memory: [Memory; 2],
}

pub(crate) async fn run(program: &Path, sizes: &Sizes) -> Result<Create> {
    let site = Site::start(program).await?;
    let kind = Kind::numbered(0);
    let tuning = Tuning {
        workers: sizes.workers,
        ..Tuning::default()
    };
    let katalogs = [katalog("shops", std::slice::from_ref(&kind), &tuning)?];
    let mut ork = site.run(std::slice::from_ref(&kind), &katalogs).await?;
    bare::children(&site, "warm", WARM, Child::apply).await?;
    site.namespace("first").await?;
    let first = kind.creations("first", 0..WARM);
    api::send_all(&site.client, &first).await?;
    ork.until_quiet(float(WARM), LIMIT).await?;

    let before = bare::children(&site, "bare-before", sizes.crs, Child::apply).await?;
    let mut figures = measure(&site, &mut ork, &kind, sizes.crs).await?;
    let after = bare::children(&site, "bare-after", sizes.crs, Child::apply).await?;
    figures.bare_seconds = [before.0, after.0];
    figures.bare_servers_cpu = [before.1, after.1];
    figures.bare_post_seconds = bare::children(&site, "bare-post", sizes.crs, Child::create)
        .await?
        .0;
    figures.bare_everything_seconds = bare::everything(&site, "bare-all", sizes.crs).await?;
    Ok(figures)
}

async fn measure(site: &Site, ork: &mut Ork, kind: &Kind, crs: usize) -> Result<Create> {
    let earlier = ork.metrics().await?;
    let (memory, mark) = (ork.memory()?, site.mark()?);
    let (cpu, servers_cpu) = (ork.cpu()?, Site::servers_cpu()?);
    let mut watch = Watch::open(&site.client, &kind.path(NAMESPACE)).await?;
    let mut states: HashMap<String, HashSet<String>> = HashMap::new();
    let mut see = |object: &serde_json::Value| {
        if let Some(status) = object.get("status") {
            let own = states.entry(api::name(object).to_owned()).or_default();
            own.insert(status.to_string());
        }
    };
    let writes = kind.creations(NAMESPACE, 0..crs);
    let started = Instant::now();
    let (posted, done) = tokio::try_join!(
        api::send_all(&site.client, &writes),
        watch.until_all("all custom resources are done", LIMIT, crs, |object| {
            see(object);
            is_done(object)
        })
    )?;
    let servers_cpu = Site::servers_cpu()? - servers_cpu;
    ork.until_quiet(float(crs), LIMIT).await?;
    let cpu = ork.cpu()? - cpu;
    watch.drain(Duration::from_secs(2), &mut see).await?;
    let later = ork.metrics().await?;
    let bytes = "orkestra_cache_bytes";
    Ok(Create {
        crs,
        seconds: done.duration_since(started).as_secs_f64(),
        post_seconds: posted.as_secs_f64(),
        cpu,
        servers_cpu,
        bare_seconds: [0.0; 2],
        bare_servers_cpu: [0.0; 2],
        bare_post_seconds: 0.0,
        bare_everything_seconds: 0.0,
        requests: site.requests_since(mark)?,
        states: states.values().map(HashSet::len).sum(),
        records: [&earlier, &later].map(|metrics| metrics.sum("orkestra_cache_records")),
        record_bytes: earlier
            .find(bytes)
            .zip(later.find(bytes))
            .map(<[f64; 2]>::from),
        memory: [memory, ork.memory()?],
    })
}

impl Create {
    /// The writes that a custom resource needs: its children, its finalizer with the inventory, and each different status.
    fn minimum(&self) -> f64 {
        float(CHILDREN + 1) + float(self.states) / float(self.crs)
    }

    fn counted_bytes_a_record(&self) -> Option<f64> {
        let [before, after] = self.record_bytes?;
        Some((after - before) / (self.records[1] - self.records[0]).max(1.0))
    }

    fn bytes_a_record(&self) -> f64 {
        let [before, after] = self.memory;
        (after.heap_mb - before.heap_mb) * 1e6 / (self.records[1] - self.records[0]).max(1.0)
    }
}

impl Figures for Create {
    fn title(&self) -> String {
        format!(
            "{} custom resources × (Deployment, Service, ConfigMap, Secret, status); bare: the children alone",
            self.crs
        )
    }

    fn rows(&self) -> Vec<Row> {
        let mean = |[a, b]: [f64; 2]| f64::midpoint(a, b);
        let crs = float(self.crs);
        let mut rows = vec![
            Row::new("until all are done", "s", self.seconds)
                .beside(mean(self.bare_seconds))
                .goal(Goal::TimesBare(1.2)),
            Row::new("the same beside bare by POST", "s", self.seconds)
                .beside(self.bare_post_seconds),
            Row::new(
                "the same beside all these writes by bare",
                "s",
                self.seconds,
            )
            .beside(self.bare_everything_seconds),
            Row::new("CPU of ork", "s", self.cpu).goal(Goal::AtMost(1.5 * crs / 1000.0)),
            Row::new("CPU of kube-apiserver and etcd", "s", self.servers_cpu)
                .beside(mean(self.bare_servers_cpu)),
            Row::new(
                "requests per custom resource, Events apart",
                "",
                float(self.requests.total) / crs,
            )
            .beside(float(CHILDREN)),
            Row::new(
                "writes per custom resource",
                "",
                float(self.requests.writes) / crs,
            )
            .beside(float(CHILDREN))
            .goal(Goal::AtMost(self.minimum())),
            Row::new(
                "Events per custom resource",
                "",
                float(self.requests.events) / crs,
            ),
        ];
        let often = |(_, count): &(&String, &usize)| float(**count) / crs >= 0.01;
        rows.extend(
            self.requests
                .by
                .iter()
                .filter(often)
                .map(|(what, count)| Row::new(format!("… {what}"), "", float(*count) / crs)),
        );
        rows.extend([Row::new("heap per record", "B", self.bytes_a_record())]);
        let counted = self.counted_bytes_a_record();
        rows.extend(counted.map(|bytes| Row::new("record, by ork's own account", "B", bytes)));
        rows
    }

    fn broken(&self) -> Vec<String> {
        let writes = float(self.requests.writes) / float(self.crs);
        let records = self.records[1] - self.records[0];
        let expected = float(self.crs * (CHILDREN + 1));
        [
            promise(writes <= self.minimum(), || {
                format!(
                    "{writes} writes per custom resource, {} are needed: {:?}",
                    self.minimum(),
                    self.requests.by
                )
            }),
            promise(
                self.requests.total == self.requests.writes + self.requests.watches,
                || format!("something was read to create: {:?}", self.requests.by),
            ),
            promise((records - expected).abs() < 0.5, || {
                format!("{records} records for {expected} objects")
            }),
            promise(self.bytes_a_record() <= BYTES_A_RECORD, || {
                format!("{:.0} bytes of heap for a record", self.bytes_a_record())
            }),
            self.counted_bytes_a_record()
                .filter(|bytes| *bytes > COUNTED_BYTES_A_RECORD)
                .map(|bytes| format!("{bytes:.0} bytes for a record by its own account")),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
