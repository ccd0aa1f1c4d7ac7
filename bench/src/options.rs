//! What is run, and how much of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use serde::Serialize;
use serde_json::Value;

use crate::report::Report;
use crate::scenarios::Scenario;

/// Measures `ork` on a genuine control plane, beside the same writes without a controller
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    /// Scenarios to run [default: all]
    #[arg(value_enum)]
    chosen: Vec<Scenario>,
    /// The `ork` to measure [default: the one beside this program]
    #[arg(long, env = "ORK")]
    ork: Option<PathBuf>,
    /// File for the figures [default: bench/bench.json in the folder that this program was built in]
    #[arg(long)]
    out: Option<PathBuf>,
    /// How much
    #[command(flatten)]
    pub(crate) sizes: Sizes,
}

/// How much of everything.
#[derive(Debug, Clone, clap::Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sizes {
    /// Custom resources of create, template and noop
    #[arg(long, default_value_t = 1000)]
    pub(crate) crs: usize,
    /// Workers of each operator [default: as many as `ork` has by itself]
    #[arg(long)]
    pub(crate) workers: Option<u32>,
    /// Measure no creation without a controller: where no time is of interest
    #[arg(long)]
    pub(crate) without_bare: bool,
    /// Changes, and deletions, of which `change` takes the percentiles
    #[arg(long, default_value_t = 500)]
    pub(crate) samples: usize,
    /// Numbers of operators of idle
    #[arg(long, value_delimiter = ',', default_value = "1,15,100,500")]
    pub(crate) idle: Vec<usize>,
    /// Operators of fleet
    #[arg(long, default_value_t = 15)]
    pub(crate) operators: usize,
    /// Custom resources of each operator of fleet
    #[arg(long, default_value_t = 217)]
    pub(crate) per_operator: usize,
    /// Katalogs of komposer
    #[arg(long, default_value_t = 50)]
    pub(crate) sources: usize,
    /// Seconds in which komposer and gateway count requests while nothing changes
    #[arg(long, default_value_t = 60)]
    pub(crate) quiet: u64,
    /// Definitions of cold
    #[arg(long, default_value_t = 100)]
    pub(crate) cold_operators: usize,
    /// Custom resources of each definition of cold
    #[arg(long, default_value_t = 100)]
    pub(crate) cold_per_operator: usize,
    /// Children of each custom resource of cold
    #[arg(long, default_value_t = 1)]
    pub(crate) cold_children: usize,
    /// Katalogs that `first` applies one after the other
    #[arg(long, default_value_t = 20)]
    pub(crate) firsts: usize,
    /// How often handover and crash end a leader
    #[arg(long, default_value_t = 5)]
    pub(crate) failovers: usize,
    /// Seconds in which noop counts passes over an unchanged world
    #[arg(long, default_value_t = 30)]
    pub(crate) window: u64,
    /// Conversions of gateway
    #[arg(long, default_value_t = 100_000)]
    pub(crate) conversions: usize,
    /// The webhook of hack/go-webhook, for gateway to compare with
    #[arg(long, env = "GO_WEBHOOK")]
    #[serde(skip)]
    pub(crate) go_webhook: Option<PathBuf>,
    /// Seconds for which gateway creates while certificates rotate
    #[arg(long, default_value_t = 60)]
    pub(crate) rotation: u64,
    /// Creations a second meanwhile
    #[arg(long, default_value_t = 500)]
    pub(crate) rotation_rate: u32,
    /// Reviews a second of the flood of gateway
    #[arg(long, default_value_t = 2000)]
    pub(crate) flood_rate: u32,
    /// Seconds after a burst or a relist before memory is read
    #[arg(long, default_value_t = 30)]
    pub(crate) settle: u64,
}

impl Sizes {
    /// By their names.
    pub(crate) fn reported(&self) -> Result<BTreeMap<String, Value>> {
        Ok(serde_json::from_value(serde_json::to_value(self)?)?)
    }
}

impl Options {
    /// What was chosen, in the order of the list; all if nothing was.
    pub(crate) fn scenarios(&self) -> Vec<Scenario> {
        let chosen = |one: &Scenario| self.chosen.is_empty() || self.chosen.contains(one);
        Scenario::all().into_iter().filter(chosen).collect()
    }

    /// The program to measure.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        let program = match &self.ork {
            Some(given) => given.clone(),
            None => own_folder()?.join("ork"),
        };
        ensure!(
            program.is_file(),
            "there is no {}: build it in the same profile (cargo build --workspace --bins), or name another with --ork",
            program.display()
        );
        Ok(program.canonicalize()?)
    }

    /// Where the figures go.
    pub(crate) fn out(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            let target = own_folder()
                .ok()
                .and_then(|folder| Some(folder.parent()?.to_owned()));
            target.unwrap_or_default().join("bench").join("bench.json")
        })
    }

    /// Writes them, and the table as Markdown beside them.
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

/// The folder of this program: `target/release`, `target/debug`.
fn own_folder() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own
        .parent()
        .context("a program without a folder")?
        .to_owned())
}
