//! A Katalog and a custom resource of a served kind, until the first child.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::json;

use super::Figures;
use crate::api::{self, Write};
use crate::options::Sizes;
use crate::report::{Goal, Row};
use crate::shop::{Kind, NAMESPACE, Tuning, katalog, resource_name};
use crate::site::{Site, apply_katalog};
use crate::stats::Percentiles;
use crate::watch::{ObjectChange, Watch};

/// The longest time that one sample may take.
const LIMIT: Duration = Duration::from_mins(1);
/// The pause between two samples.
const PAUSE: Duration = Duration::from_millis(500);
/// The namespace of the harness. `ork` reads no Katalogs in it.
const BARE: &str = "bare";

/// The figures, in milliseconds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct First {
    /// The number of Katalogs.
    samples: usize,
    /// From the request that applies the Katalog until the watch reports the `ConfigMap`.
    child: Percentiles,
    /// The same if the harness applies the Katalog, the custom resource and the `ConfigMap`.
    bare_child: Percentiles,
}

// Over 60 lines: a scenario, one measurement after the other.
pub(crate) async fn run(program: &Path, sizes: &Sizes) -> Result<First> {
    let site = Site::start(program).await?;
    let kinds = Kind::some(sizes.firsts);
    let tuning = Tuning {
        workers: sizes.workers,
        ..Tuning::default()
    };
    let katalogs = crate::shop::katalogs(&kinds, 1, &tuning)?;
    site.install(&kinds).await?;
    site.install(std::slice::from_ref(&Kind::without_operator()))
        .await?;
    site.namespace(BARE).await?;
    site.grant(&katalogs, &kinds).await?;
    let mut ork = site.controller_for(NAMESPACE).await?;
    ork.until_quiet(0.0, LIMIT).await?;

    let map = site
        .children
        .iter()
        .find(|child| child.collection() == "configmaps");
    let map = map.context("katalog.yaml has no ConfigMap")?;
    let client = &site.client;
    let mut watch = Watch::open(client, &map.path(NAMESPACE)).await?;
    let mut bare_watch = Watch::open(client, &map.path(BARE)).await?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for (index, kind) in kinds.iter().enumerate() {
        let name = resource_name(index);
        let is_it = |change: &ObjectChange| matches!(change, ObjectChange::Put(object) if api::name(object) == name);
        let mut elsewhere = katalog(
            &format!("bare-{index}"),
            std::slice::from_ref(kind),
            &tuning,
        )?;
        elsewhere["metadata"]["namespace"] = json!(BARE);
        let writes = [
            Write::create(
                &format!("/apis/orkestra.orkspace.io/v1/namespaces/{BARE}/katalogs"),
                &elsewhere,
            ),
            Write::create(
                &Kind::without_operator().path(BARE),
                &Kind::without_operator().resource(BARE, &name),
            ),
            map.apply(BARE, &name)?,
        ];
        let started = Instant::now();
        for write in &writes {
            write.send(client).await?;
        }
        let seen = bare_watch
            .until("the harness' ConfigMap is there", LIMIT, is_it)
            .await?;
        without.push(seen.duration_since(started));
        tokio::time::sleep(PAUSE).await;

        let apply = apply_katalog(&katalogs[index]);
        let create = Write::create(&kind.path(NAMESPACE), &kind.resource(NAMESPACE, &name));
        let started = Instant::now();
        apply.send(client).await?;
        create.send(client).await?;
        let seen = watch
            .until("the first ConfigMap is there", LIMIT, is_it)
            .await?;
        with.push(seen.duration_since(started));
        ork.check()?;
        tokio::time::sleep(PAUSE).await;
    }
    let none = "no sample was taken: --firsts 0?";
    Ok(First {
        samples: sizes.firsts,
        child: Percentiles::of(with).context(none)?,
        bare_child: Percentiles::of(without).context(none)?,
    })
}

impl Figures for First {
    fn title(&self) -> String {
        format!(
            "a Katalog and a custom resource applied, the definition is served; {} times",
            self.samples
        )
    }

    fn rows(&self) -> Vec<Row> {
        vec![
            Row::new("until the first child, p50", "ms", self.child.p50)
                .beside(self.bare_child.p50)
                .goal(Goal::AtMost(100.0)),
            Row::new("until the first child, the slowest", "ms", self.child.max)
                .beside(self.bare_child.max),
        ]
    }
}
