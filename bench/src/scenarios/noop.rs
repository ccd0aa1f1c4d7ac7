//! Reconcile passes over converged custom resources: the resync.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::{Figures, population::converged, promise};
use crate::options::Sizes;
use crate::report::{Goal, Row};
use crate::requests::Requests;
use crate::shop::{Tuning, katalog};

/// The longest time until the operator uses the new period and its status contains the counts.
const SETTLED: Duration = Duration::from_secs(8);

/// The figures.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Noop {
    /// The number of custom resources.
    crs: usize,
    /// The seconds of the window.
    window: u64,
    /// The passes in the window.
    passes: f64,
    /// CPU seconds of `ork` in the window.
    cpu: f64,
    /// The requests of `ork` in the window.
    requests: Requests,
}

pub(crate) async fn run(program: &Path, sizes: &Sizes) -> Result<Noop> {
    let (site, mut ork, population, tuning) = converged(program, sizes).await?;

    let resync = Tuning {
        resync: Some("2s"),
        ..tuning
    };
    let busy = [katalog("shops", &population.kinds, &resync)?];
    site.apply_katalogs(&busy).await?;
    site.until_running(&mut ork, &busy).await?;
    tokio::time::sleep(SETTLED).await;
    let mark = site.mark()?;
    let (passes, cpu) = (passes(&ork).await?, ork.cpu()?);
    tokio::time::sleep(Duration::from_secs(sizes.window)).await;
    Ok(Noop {
        crs: sizes.crs,
        window: sizes.window,
        cpu: ork.cpu()? - cpu,
        passes: self::passes(&ork).await? - passes,
        requests: site.requests_since(mark)?,
    })
}

async fn passes(ork: &crate::process::Ork) -> Result<f64> {
    Ok(ork.metrics().await?.sum("orkestra_reconcile_total"))
}

impl Figures for Noop {
    fn title(&self) -> String {
        format!(
            "{:.0} passes over {} custom resources that are as declared",
            self.passes, self.crs
        )
    }

    fn rows(&self) -> Vec<Row> {
        let asked = crate::stats::float(self.requests.asked);
        vec![
            Row::new("requests per pass", "", asked / self.passes.max(1.0)).goal(Goal::AtMost(0.0)),
            Row::new(
                "CPU per thousand passes",
                "s",
                self.cpu * 1e3 / self.passes.max(1.0),
            ),
        ]
    }

    fn broken(&self) -> Vec<String> {
        let each = crate::stats::float(self.crs);
        [
            promise(self.passes >= each, || {
                format!(
                    "{} passes over {} custom resources in {} s: nothing was resynced",
                    self.passes, self.crs, self.window
                )
            }),
            promise(self.requests.asked == 0, || {
                format!("requests for nothing: {:?}", self.requests.by)
            }),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
