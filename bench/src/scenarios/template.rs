//! A changed label in the template of many custom resources.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Figures,
    population::{LIMIT, converged},
    promise,
};
use crate::api::{self, Write};
use crate::bare::{self, By, What};
use crate::options::Sizes;
use crate::report::{Goal, Row};
use crate::requests::Requests;
use crate::shop::{Child, NAMESPACE, Tuning, katalog, resource_name};
use crate::site::{Site, apply_katalog};
use crate::stats::float;
use crate::watch::Watch;

/// The figures.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Template {
    /// The number of custom resources.
    crs: usize,
    /// From the change of the Katalog until every `ConfigMap` has the label.
    seconds: f64,
    /// The same change of the same number of `ConfigMap`s by the harness: before and after.
    bare_seconds: [f64; 2],
    /// The requests of `ork`.
    requests: Requests,
    /// CPU seconds of `ork`.
    cpu: f64,
}

pub(crate) async fn run(program: &Path, sizes: &Sizes) -> Result<Template> {
    let (site, mut ork, population, tuning) = converged(program, sizes).await?;
    bare::make(&site, What::Children(By::Apply), "bare", sizes.crs).await?;

    let before = relabel(&site, sizes.crs, "second").await?;
    let wanted = Tuning {
        edition: Some("second".to_owned()),
        ..tuning
    };
    let changed = katalog("shops", &population.kinds, &wanted)?;
    let mut watch = Watch::open(&site.client, &map(&site)?.path(NAMESPACE)).await?;
    let (mark, cpu) = (site.mark()?, ork.cpu()?);
    let started = Instant::now();
    apply_katalog(&changed).send(&site.client).await?;
    let has_it = |object: &Value| api::text(object, "/metadata/labels/edition") == "second";
    let seen = watch
        .until_all("all ConfigMaps have the label", LIMIT, sizes.crs, has_it)
        .await?;
    ork.until_quiet(0.0, LIMIT).await?;
    Ok(Template {
        crs: sizes.crs,
        seconds: seen.duration_since(started).as_secs_f64(),
        cpu: ork.cpu()? - cpu,
        requests: site.requests_since(mark)?,
        bare_seconds: [before, relabel(&site, sizes.crs, "third").await?],
    })
}

fn map(site: &Site) -> Result<&Child> {
    let mut all = site.children.iter();
    all.find(|child| child.collection() == "configmaps")
        .context("katalog.yaml has no ConfigMap")
}

async fn relabel(site: &Site, count: usize, edition: &str) -> Result<f64> {
    let map = map(site)?;
    let mut writes = Vec::with_capacity(count);
    for index in 0..count {
        let name = resource_name(index);
        let mut object = map.object("bare", &name)?;
        object["metadata"]["labels"]["edition"] = json!(edition);
        writes.push(Write::apply(
            &format!("{}/{name}", map.path("bare")),
            &object,
        ));
    }
    Ok(api::send_all(&site.client, &writes).await?.as_secs_f64())
}

impl Figures for Template {
    fn title(&self) -> String {
        format!("a label changed in the template of {} ConfigMaps", self.crs)
    }

    fn rows(&self) -> Vec<Row> {
        let [before, after] = self.bare_seconds;
        vec![
            Row::new("until all have it", "s", self.seconds)
                .beside(f64::midpoint(before, after))
                .goal(Goal::TimesBare(1.2)),
            Row::new(
                "requests per custom resource",
                "",
                float(self.requests.total) / float(self.crs),
            )
            .beside(1.0)
            .goal(Goal::AtMost(1.0)),
            Row::new("CPU of ork", "s", self.cpu),
        ]
    }

    fn broken(&self) -> Vec<String> {
        let one_each = self.requests.total - self.requests.watches == self.crs;
        promise(one_each, || {
            format!("{} changes cost {:?}", self.crs, self.requests.by)
        })
        .into_iter()
        .collect()
    }
}
