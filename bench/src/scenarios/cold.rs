//! A cold start with many definitions.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::{
    Figures,
    fleet::{cold_broken, cold_rows},
    population::{ColdStart, Population, restart},
};
use crate::options::Sizes;
use crate::report::Row;
use crate::shop::{BLOCKS, Kind, Tuning, katalogs};
use crate::site::Site;

/// The number of operators in one Katalog.
const A_KATALOG: usize = 20;
/// The longest time until the Katalogs' statuses contain the counts.
const SETTLED: Duration = Duration::from_secs(8);

/// The figures.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cold {
    /// The number of definitions, each with an operator.
    operators: usize,
    /// The number of custom resources.
    crs: usize,
    /// The number of children.
    children: usize,
    /// The start of a controller with these objects.
    start: ColdStart,
}

pub(crate) async fn run(program: &Path, sizes: &Sizes) -> Result<Cold> {
    let site = Site::start(program).await?;
    let population = Population {
        kinds: Kind::some(sizes.cold_operators),
        per_kind: sizes.cold_per_operator,
        children: sizes.cold_children.clamp(1, BLOCKS.len()),
    };
    let tuning = Tuning {
        workers: sizes.workers,
        children: Some(population.children),
        ..Tuning::default()
    };
    let katalogs = katalogs(&population.kinds, A_KATALOG, &tuning)?;
    let mut ork = site.run(&population.kinds, &katalogs).await?;
    population.create(&site, &mut ork).await?;
    tokio::time::sleep(SETTLED).await;
    let (_, start) = restart(&site, ork, population.resources()).await?;
    Ok(Cold {
        operators: population.kinds.len(),
        crs: population.resources(),
        children: population.all_children(),
        start,
    })
}

impl Figures for Cold {
    fn title(&self) -> String {
        format!(
            "{} definitions, {} custom resources, {} children",
            self.operators, self.crs, self.children
        )
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = cold_rows(&self.start, 3.0).to_vec();
        rows.push(Row::new(
            "RSS, peak at cold start",
            "MB",
            self.start.memory.peak_mb,
        ));
        rows.push(Row::new("RSS after it", "MB", self.start.memory.rss_mb));
        rows
    }

    fn broken(&self) -> Vec<String> {
        cold_broken(&self.start)
    }
}
