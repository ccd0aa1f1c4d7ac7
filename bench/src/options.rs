//! The scenarios to run and their sizes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use serde::Serialize;
use serde_json::Value;

use crate::report::Report;
use crate::scenarios::Scenario;

/// Measures `ork` on a genuine control plane, and the same writes without a controller
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    /// Scenarios to run [default: all]
    #[arg(value_enum)]
    chosen: Vec<Scenario>,
    /// The `ork` to measure [default: the one in the folder of this program]
    #[arg(long, env = "ORK")]
    ork: Option<PathBuf>,
    /// File for the figures [default: bench/bench.json in the folder that this program was built in]
    #[arg(long)]
    out: Option<PathBuf>,
    /// The sizes
    #[command(flatten)]
    pub(crate) sizes: Sizes,
}

/// The sizes of the scenarios.
#[derive(Debug, Clone, clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sizes {
    /// Number of custom resources of create, template and noop
    #[arg(long, default_value_t = 1000)]
    pub(crate) crs: usize,
    /// Number of workers of each operator [default: the default of `ork`]
    #[arg(long)]
    pub(crate) workers: Option<u32>,
    /// Do not measure creations without a controller, for a run whose times do not matter
    #[arg(long)]
    pub(crate) without_bare: bool,
    /// Number of changes, and of deletions, in the percentiles of `change`
    #[arg(long, default_value_t = 500)]
    pub(crate) samples: usize,
    /// Numbers of operators of idle, comma-separated
    #[arg(long, value_delimiter = ',', default_value = "1,15,100,500")]
    pub(crate) idle: Vec<usize>,
    /// Number of operators of fleet
    #[arg(long, default_value_t = 15)]
    pub(crate) operators: usize,
    /// Number of custom resources of each operator of fleet
    #[arg(long, default_value_t = 217)]
    pub(crate) per_operator: usize,
    /// Number of Katalogs of komposer
    #[arg(long, default_value_t = 50)]
    pub(crate) sources: usize,
    /// Seconds in which komposer and gateway count requests while nothing changes
    #[arg(long, default_value_t = 60)]
    pub(crate) quiet: u64,
    /// Number of definitions of cold
    #[arg(long, default_value_t = 100)]
    pub(crate) cold_operators: usize,
    /// Number of custom resources of each definition of cold
    #[arg(long, default_value_t = 100)]
    pub(crate) cold_per_operator: usize,
    /// Number of children of each custom resource of cold
    #[arg(long, default_value_t = 1)]
    pub(crate) cold_children: usize,
    /// Number of Katalogs that `first` applies one after the other
    #[arg(long, default_value_t = 20)]
    pub(crate) firsts: usize,
    /// Number of times that handover and crash end a leader
    #[arg(long, default_value_t = 5)]
    pub(crate) failovers: usize,
    /// Seconds in which noop counts passes while nothing changes
    #[arg(long, default_value_t = 30)]
    pub(crate) window: u64,
    /// Number of conversions of gateway
    #[arg(long, default_value_t = 100_000)]
    pub(crate) conversions: usize,
    /// The webhook of hack/go-webhook, with which gateway compares the one of `ork`
    #[arg(long, env = "GO_WEBHOOK")]
    #[serde(skip)]
    pub(crate) go_webhook: Option<PathBuf>,
    /// Seconds for which gateway creates objects while certificates rotate
    #[arg(long, default_value_t = 60)]
    pub(crate) rotation: u64,
    /// Creations per second during that time
    #[arg(long, default_value_t = 500)]
    pub(crate) rotation_rate: u32,
    /// Reviews per second of the flood of gateway
    #[arg(long, default_value_t = 2000)]
    pub(crate) flood_rate: u32,
    /// Seconds between a burst or a relist and the reading of memory
    #[arg(long, default_value_t = 30)]
    pub(crate) settle: u64,
}

impl Sizes {
    /// Returns the sizes by name.
    pub(crate) fn reported(&self) -> Result<BTreeMap<String, Value>> {
        Ok(serde_json::from_value(serde_json::to_value(self)?)?)
    }
}

impl Options {
    /// Returns the chosen scenarios in the order of the list, or all of them if none was chosen.
    pub(crate) fn scenarios(&self) -> Vec<Scenario> {
        let chosen = |one: &Scenario| self.chosen.is_empty() || self.chosen.contains(one);
        Scenario::all().into_iter().filter(chosen).collect()
    }

    /// Returns the program to measure.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        let program = match &self.ork {
            Some(given) => given.clone(),
            None => own_folder()?.join("ork"),
        };
        ensure!(
            program.is_file(),
            "{} does not exist: build it in the same profile (cargo build --workspace --bins), or set another path with --ork",
            program.display()
        );
        Ok(program.canonicalize()?)
    }

    /// Returns the file for the figures.
    pub(crate) fn out(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            let target = own_folder()
                .ok()
                .and_then(|folder| Some(folder.parent()?.to_owned()));
            target.unwrap_or_default().join("bench").join("bench.json")
        })
    }

    /// Writes the figures, and the table as a Markdown file in the same folder.
    pub(crate) fn write(&self, report: &Report) -> Result<()> {
        let file = self.out();
        if let Some(folder) = file.parent().filter(|folder| *folder != Path::new("")) {
            std::fs::create_dir_all(folder)?;
        }
        let text = serde_json::to_string_pretty(report)?;
        for (file, text) in [
            (file.with_extension("md"), report.markdown()),
            (file, text + "\n"),
        ] {
            std::fs::write(&file, text)
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(())
    }
}

/// Returns the folder of this program: `target/release`, `target/debug`.
fn own_folder() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own
        .parent()
        .context("a program without a folder")?
        .to_owned())
}
