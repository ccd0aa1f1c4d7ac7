//! `autoscale` of a workload: conditions for more or fewer pods.

use std::time::Duration;

use super::{Gate, Leaf};

/// The field of a workload with its number of pods.
pub const REPLICAS: [&str; 2] = ["spec", "replicas"];

/// Scales a workload by conditions.
#[derive(Debug)]
pub struct ScalePlan {
    /// Minimum number of pods; `None` is 1.
    pub min: Option<Leaf>,
    /// Maximum number of pods; `None` is unlimited.
    pub max: Option<Leaf>,
    /// Minimum time between two changes.
    pub cooldown: Duration,
    /// The step that adds pods.
    pub up: Option<ScaleStep>,
    /// The step that removes pods.
    pub down: Option<ScaleStep>,
}

/// A change of the number of pods.
#[derive(Debug)]
pub struct ScaleStep {
    /// The gate of the step.
    pub gate: Gate,
    /// The number of pods to add or remove; `None` is 1.
    pub by: Option<Leaf>,
}

impl ScalePlan {
    /// Returns the leaves to render, without the gates.
    pub fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        let Self {
            min,
            max,
            cooldown: _,
            up,
            down,
        } = self;
        let by = up.iter().chain(down).filter_map(|step| {
            let ScaleStep { gate: _, by } = step;
            by.as_ref()
        });
        min.iter().chain(max).chain(by)
    }

    /// Returns the gates of its steps.
    pub(crate) fn gates(&self) -> impl Iterator<Item = &Gate> {
        self.up.iter().chain(&self.down).map(|step| &step.gate)
    }
}
