//! Many custom resources created at once, until each has its children and its status.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::{Figures, population::LIMIT, promise};
use crate::process::{Memory, Ork};
use crate::report::{Goal, Row};
use crate::requests::Requests;
use crate::shop::{BLOCKS, Kind, NAMESPACE, Tuning, is_done, katalog};
use crate::site::Site;
use crate::stats::float;
use crate::watch::Watch;
use crate::{
    api,
    bare::{self, Bare, By, WARM, What},
    options::Sizes,
};

/// The number of children of one custom resource.
const CHILDREN: usize = BLOCKS.len();
/// The goal for the heap of a record, in bytes. It leaves room for debug builds and few records.
const BYTES_A_RECORD: f64 = 6e3;
/// The same as counted by `ork` itself, which does not depend on the allocator.
const COUNTED_BYTES_A_RECORD: f64 = 1e3;

/// The figures.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Create {
    /// The number of custom resources.
    crs: usize,
    /// From the first POST of a custom resource until the last one was done.
    seconds: f64,
    /// The part of that time in which the harness sent the POSTs.
    post_seconds: f64,
    /// CPU seconds of `ork`.
    cpu: f64,
    /// CPU seconds of etcd and the API server in that time.
    servers_cpu: f64,
    /// The figures of the harness, unless `--without-bare` is set.
    bare: Option<Bares>,
    /// The requests of `ork`.
    requests: Requests,
    /// The number of different statuses of all custom resources.
    states: usize,
    /// The number of records before and after.
    records: [f64; 2],
    /// The bytes of the records before and after as counted by `ork` itself, if it counts them.
    record_bytes: Option<[f64; 2]>,
    /// The memory of `ork` before and after.
    memory: [Memory; 2],
}

/// The figures of the harness, each on an otherwise empty API server.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
struct Bares {
    /// The custom resources and their children, by apply, before `ork` is measured.
    before: Bare,
    /// The same, after all other measurements.
    after: Bare,
    /// The same, by POST.
    post: Bare,
    /// Only the children, by apply.
    children: Bare,
    /// The custom resources and all writes of `ork` for them.
    everything: Bare,
}

pub(crate) async fn run(program: &Path, sizes: &Sizes) -> Result<Create> {
    if sizes.without_bare {
        return with_operator(program, sizes).await;
    }
    let bare = async |what| bare::measured(program, what, sizes.crs).await;
    let before = bare(What::Instances(By::Apply)).await?;
    let figures = with_operator(program, sizes).await?;
    let bare = Bares {
        before,
        post: bare(What::Instances(By::Post)).await?,
        children: bare(What::Children(By::Apply)).await?,
        everything: bare(What::Everything).await?,
        after: bare(What::Instances(By::Apply)).await?,
    };
    Ok(Create {
        bare: Some(bare),
        ..figures
    })
}

async fn with_operator(program: &Path, sizes: &Sizes) -> Result<Create> {
    let site = Site::start(program).await?;
    let kind = Kind::numbered(0);
    let tuning = Tuning {
        workers: sizes.workers,
        ..Tuning::default()
    };
    let katalogs = [katalog("shops", std::slice::from_ref(&kind), &tuning)?];
    let mut ork = site.run(std::slice::from_ref(&kind), &katalogs).await?;
    site.namespace("first").await?;
    let first = kind.creations("first", 0..WARM);
    api::send_all(&site.client, &first).await?;
    ork.until_quiet(float(WARM), LIMIT).await?;
    measure(&site, &mut ork, &kind, sizes.crs).await
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
        bare: None,
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
    /// Returns the number of writes that a custom resource needs: its children, its finalizer with the inventory, and each
    /// different status.
    fn minimum(&self) -> f64 {
        float(CHILDREN + 1) + float(self.states) / float(self.crs)
    }

    /// Returns the duration and the CPU seconds of the servers, each with the figures of the harness.
    fn seconds_rows(&self) -> Vec<Row> {
        let seconds = Row::new("until all are done", "s", self.seconds).goal(Goal::TimesBare(1.2));
        let servers = Row::new("CPU of kube-apiserver and etcd", "s", self.servers_cpu);
        let Some(bare) = &self.bare else {
            return vec![seconds, servers];
        };
        let mean =
            |figure: fn(&Bare) -> f64| f64::midpoint(figure(&bare.before), figure(&bare.after));
        let same = |name: &str, bare: Bare| {
            let name = format!("the same beside {name}");
            Row::new(name, "s", self.seconds).beside(bare.seconds)
        };
        vec![
            seconds.beside(mean(|bare| bare.seconds)),
            same("bare by POST", bare.post),
            same("the children alone by bare", bare.children),
            same("all these writes by bare", bare.everything),
            servers.beside(mean(|bare| bare.servers_cpu)),
        ]
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
            "{} custom resources × (Deployment, Service, ConfigMap, Secret, status); bare: the custom resources and the children by apply",
            self.crs
        )
    }

    fn rows(&self) -> Vec<Row> {
        let crs = float(self.crs);
        let mut rows = self.seconds_rows();
        rows.extend([
            Row::new("CPU of ork", "s", self.cpu).goal(Goal::AtMost(1.5 * crs / 1000.0)),
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
        ]);
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
