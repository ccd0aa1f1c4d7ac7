//! Operators without custom resources.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::{Figures, population::LIMIT};
use crate::options::Sizes;
use crate::process::Memory;
use crate::report::{Goal, Row};
use crate::shop::{Kind, Tuning, katalogs};
use crate::site::Site;
use crate::stats::{float, slope};

/// The number of operators in one Katalog.
const A_KATALOG: usize = 20;
/// The time that a controller gets to settle before it is measured.
const SETTLED: Duration = Duration::from_secs(8);

/// The figures.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Idle {
    /// For each number of operators, a controller that was started with them.
    steps: Vec<Step>,
}

#[derive(Debug, Serialize)]
struct Step {
    operators: usize,
    memory: Memory,
}

pub(crate) async fn run(program: &Path, sizes: &Sizes) -> Result<Idle> {
    let site = Site::start(program).await?;
    let mut numbers = sizes.idle.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let tuning = Tuning {
        workers: sizes.workers,
        ..Tuning::default()
    };
    let (mut steps, mut installed) = (Vec::new(), 0);
    for operators in numbers {
        let kinds = Kind::some(operators);
        let katalogs = katalogs(&kinds, A_KATALOG, &tuning)?;
        site.install(&kinds[installed..]).await?;
        installed = operators;
        site.grant(&katalogs, &kinds).await?;
        // A first controller reports the operators' start. The second one is measured, because it has done no such work.
        let mut first = site.controller().await?;
        site.apply_katalogs(&katalogs).await?;
        site.until_running(&mut first, &katalogs).await?;
        first.terminate()?;
        let mut ork = site.controller().await?;
        site.until_all_run(&mut ork, operators).await?;
        ork.until_quiet(0.0, LIMIT).await?;
        tokio::time::sleep(SETTLED).await;
        steps.push(Step {
            operators,
            memory: ork.memory()?,
        });
        ork.terminate()?;
    }
    steps
        .first()
        .context("no number of operators was given: --idle")?;
    Ok(Idle { steps })
}

impl Idle {
    /// Returns the kilobytes for each further operator.
    fn slope(&self, megabytes: impl Fn(&Memory) -> f64) -> Option<f64> {
        let points = self.steps.iter();
        let points = points.map(|step| (float(step.operators), megabytes(&step.memory) * 1e3));
        slope(&points.collect::<Vec<_>>())
    }
}

impl Figures for Idle {
    fn title(&self) -> String {
        "operators whose definitions exist, without a custom resource".to_owned()
    }

    fn rows(&self) -> Vec<Row> {
        let each = |step: &Step| {
            let what = |what: &str| format!("{what} with {} operators", step.operators);
            [
                Row::new(what("RSS"), "MB", step.memory.rss_mb),
                Row::new(what("heap"), "MB", step.memory.heap_mb),
                Row::new(what("threads"), "", f64::from(step.memory.threads)),
            ]
        };
        let rows: Vec<Row> = self.steps.iter().flat_map(each).collect();
        let rss = self.slope(|memory| memory.rss_mb).map(|slope| {
            Row::new("RSS per further operator", "KB", slope).goal(Goal::AtMost(50.0))
        });
        let heap = self.slope(|memory| memory.heap_mb);
        let heap = heap.map(|slope| Row::new("heap per further operator", "KB", slope));
        rows.into_iter().chain(rss).chain(heap).collect()
    }
}
