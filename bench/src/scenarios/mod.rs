//! What is measured, a file each: every one has a control plane of its own and a struct of figures.

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
    /// Passes over an unchanged world
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
    /// Cold start with many definitions
    Cold,
    /// The leader is asked to end, until the next change is handled
    Handover,
    /// The leader is killed, until the next change is handled
    Crash,
    /// Webhooks: latency, memory, a flood, a rotation, conversions
    Gateway,
}

impl Scenario {
    /// All of them, in the order in which they run.
    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().to_vec()
    }

    /// As on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    /// Runs it on `ork`, which is at `program`.
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

/// What a scenario measured.
pub(crate) trait Figures: Serialize {
    /// What it did, with its sizes.
    fn title(&self) -> String;

    /// The lines of the table.
    fn rows(&self) -> Vec<Row>;

    /// Promises that did not hold, whatever the machine's speed.
    fn broken(&self) -> Vec<String> {
        Vec::new()
    }

    /// Why nothing could be measured, if so.
    fn not_measured(&self) -> Option<String> {
        None
    }
}

/// Tells of a promise that does not hold.
fn promise(kept: bool, broken: impl FnOnce() -> String) -> Option<String> {
    (!kept).then(broken)
}

/// What a merge patch of a custom resource's spec looks like.
fn spec_patch(field: &str, value: &str) -> Value {
    serde_json::json!({ "spec": { field: value } })
}
