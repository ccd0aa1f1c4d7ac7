//! `bench`: measures the cost and the speed of `ork` on a genuine control plane.
//!
//! ```text
//!             ┌──────────────── control plane without controllers (testbed), one a scenario ───────────────┐
//! harness ────┤ bare: the same writes, 32 at a time, without any controller                                │
//!    │        │ ork controller, as the service account that `ork generate rbac` makes                      │
//!    │        └───── audit log: requests · watch: times · /proc: memory, CPU · /metrics: passes, records ───┘
//!    └─► scenarios ─► figures ─► table, JSON, `docs/develop/performance.md`
//! ```
//!
//! A scenario fails if an expected change does not happen. A run fails if a guarantee that does not depend on the machine's speed
//! is broken, such as no unnecessary request and no unnecessary write. Times are reported, but never change the exit code.

mod api;
mod bare;
mod machine;
mod options;
mod process;
mod registry;
mod report;
mod requests;
mod scenarios;
mod shop;
mod site;
mod stats;
mod watch;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser as _;

use crate::machine::Machine;
use crate::options::Options;
use crate::report::Report;

fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("bench: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(&options)) {
        Ok(report) if report.sections.iter().all(|one| one.broken.is_empty()) => ExitCode::SUCCESS,
        Ok(_) => {
            eprintln!("bench: a guarantee is broken: see BROKEN above");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the chosen scenarios, prints each one when it ends, and writes the file after each, so that a failure does not lose
/// results.
async fn run(options: &Options) -> Result<Report> {
    let program = options.program()?;
    let mut report = Report {
        machine: Machine::read(&program)?,
        sizes: options.sizes.reported()?,
        sections: Vec::new(),
    };
    if machine::profile() == "debug" {
        println!("A debug build: its times and sizes do not apply to the shipped program.\n");
    }
    for scenario in options.scenarios() {
        let started = std::time::Instant::now();
        let section = scenario
            .run(&program, &options.sizes)
            .await
            .with_context(|| format!("scenario {}", scenario.name()))?;
        println!(
            "{}  ({:.0} s)\n",
            section.text(),
            started.elapsed().as_secs_f64()
        );
        report.sections.push(section);
        options.write(&report)?;
    }
    println!("bench: {}", options.out().display());
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of `docs/develop/performance.md` between which the table of `figures.json` is written.
    const BEGIN: &str = "<!-- figures: generated from bench/figures.json, UPDATE=1 cargo test --workspace --bin bench -->\n";
    const END: &str = "<!-- end of the figures -->\n";

    #[test]
    fn the_documented_figures_are_those_of_the_committed_run() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let run = std::fs::read_to_string(root.join("bench/figures.json")).ok();
        let run = run.map(|run| serde_json::from_str::<Report>(&run).unwrap());
        let page = root.join("docs/develop/performance.md");
        let text = std::fs::read_to_string(&page).unwrap();
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (shown, after) = rest.split_once(END).unwrap();
        let none = || "No run has been published yet.\n".to_owned();
        let wanted = run.map_or_else(none, |run| run.markdown());
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&page, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        } else {
            assert!(
                shown == wanted,
                "docs/develop/performance.md is stale; run the test again with UPDATE=1"
            );
        }
    }
}
