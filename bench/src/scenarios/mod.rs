//! The scenarios, one per file. Each has its own control plane and a struct of figures.

mod change;
mod cold;
mod create;
mod failover;
mod first;
mod fleet;
mod gateway;
mod idle;
mod komposer;
mod noop;
mod population;
mod template;

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use crate::options::Sizes;
use crate::report::{Row, Section};

/// A scenario that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Many custom resources until each has its children and its status
    Create,
    /// Reconcile passes while nothing changes
    Noop,
    /// A changed spec until its child is applied; a deleted child until it is back
    Change,
    /// A change of the template of many custom resources
    Template,
    /// A Katalog and a custom resource until the first child
    First,
    /// Memory of idle operators
    Idle,
    /// Memory and cold start with many operators and children; a burst; a relist
    Fleet,
    /// A Komposer of many Katalogs from a registry
    Komposer,
    /// A cold start with many definitions
    Cold,
    /// The leader gets SIGTERM, until the next change is handled
    Handover,
    /// The leader is killed, until the next change is handled
    Crash,
    /// Webhooks: latency, memory, a flood, a rotation, conversions
    Gateway,
}

impl Scenario {
    /// Returns all scenarios, in the order in which they run.
    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// Returns the scenario's name on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    /// Runs the scenario with the `ork` at `program`.
    pub(crate) async fn run(self, program: &Path, sizes: &Sizes) -> Result<Section> {
        match self {
            Self::Create => self.section(&create::run(program, sizes).await?),
            Self::Noop => self.section(&noop::run(program, sizes).await?),
            Self::Change => self.section(&change::run(program, sizes).await?),
            Self::Template => self.section(&template::run(program, sizes).await?),
            Self::First => self.section(&first::run(program, sizes).await?),
            Self::Idle => self.section(&idle::run(program, sizes).await?),
            Self::Fleet => self.section(&fleet::run(program, sizes).await?),
            Self::Komposer => self.section(&komposer::run(program, sizes).await?),
            Self::Cold => self.section(&cold::run(program, sizes).await?),
            Self::Handover => {
                self.section(&failover::run(program, sizes, failover::End::Terminated).await?)
            }
            Self::Crash => {
                self.section(&failover::run(program, sizes, failover::End::Killed).await?)
            }
            Self::Gateway => self.section(&gateway::run(program, sizes).await?),
        }
    }

    fn section(self, figures: &impl Figures) -> Result<Section> {
        Ok(Section {
            scenario: self.name(),
            title: figures.title(),
            rows: figures.rows(),
            figures: serde_json::to_value(figures)?,
            broken: figures.broken(),
            not_measured: figures.not_measured(),
        })
    }
}

/// The figures of a scenario.
pub(crate) trait Figures: Serialize {
    /// Returns a description of the scenario, with its sizes.
    fn title(&self) -> String;

    /// Returns the lines of the table.
    fn rows(&self) -> Vec<Row>;

    /// Returns the broken guarantees that do not depend on the machine's speed.
    fn broken(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the reason if nothing could be measured.
    fn not_measured(&self) -> Option<String> {
        None
    }
}

/// Returns the message of a broken guarantee.
fn promise(kept: bool, broken: impl FnOnce() -> String) -> Option<String> {
    (!kept).then(broken)
}

/// Returns a merge patch of a custom resource's spec.
fn spec_patch(field: &str, value: &str) -> Value {
    serde_json::json!({ "spec": { field: value } })
}
