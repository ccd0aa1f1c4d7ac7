//! `autoscale` of an operator: its metrics, and the decision to change its capacity.
//!
//! ```text
//!  metrics of this and other operators ── look ──► Look { holds, turns }
//!                                                    │ AutoscalerState, now
//!                                                    ▼
//!                                         AutoscalerState::after: true if `do` applies; the time of the next evaluation
//! ```

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    gate_effects::GateEffects,
    reason::Reason,
    render::{Frame, RenderError, Renderer},
    template_data::TemplateData,
};
use orkestra_object::value::{Key, Map, Node, Path, PathStep};
use orkestra_plan::{AutoscalePlan, GroupKind, Metric, ObjectKey, cross::CROSS};
use orkestra_template::{Data, EvalBudget};

/// The metrics of an operator, as templates read them below `.metrics`; percentages are integers up to 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutoscaleMetrics {
    /// Keys that wait for a worker.
    pub queue_depth: u64,
    /// Workers that take keys.
    pub workers: u64,
    /// Whether an autoscaler's `do` is in effect.
    pub autoscale_active: bool,
    /// The percentage of workers that run a pass.
    pub workers_busy_percent: u64,
    /// The 95th percentile of the duration of recent passes, in milliseconds; 0 without any.
    pub reconcile_duration_p95_ms: u64,
    /// The percentage of recent passes that failed; 0 without any.
    pub error_rate_percent: u64,
}

impl AutoscaleMetrics {
    /// Returns the value of that metric.
    pub fn get(&self, metric: Metric) -> Node {
        let number = |number: u64| Node::from(i64::try_from(number).unwrap_or(i64::MAX));
        match metric {
            Metric::QueueDepth => number(self.queue_depth),
            Metric::Workers => number(self.workers),
            Metric::AutoscaleActive => Node::from(self.autoscale_active),
            Metric::WorkersBusyPercent => number(self.workers_busy_percent),
            Metric::WorkersIdlePercent => number(100u64.saturating_sub(self.workers_busy_percent)),
            Metric::ReconcileDurationP95Ms => number(self.reconcile_duration_p95_ms),
            Metric::ErrorRatePercent => number(self.error_rate_percent),
        }
    }

    /// Returns all metrics, as in `.metrics`.
    pub fn to_node(&self) -> Node {
        let entries = Metric::ALL.map(|metric| (Key::from(metric.name()), self.get(metric)));
        Node::Map(entries.into_iter().collect::<Map>())
    }
}

/// The result of an autoscaler's conditions at one moment.
#[derive(Debug)]
pub struct AutoscaleDecision {
    /// Whether they hold. A condition that reads an operator that does not run, or that cannot be rendered, does not hold.
    pub holds: bool,
    /// When the result of a time condition changes.
    pub changes_at: Option<Timestamp>,
    /// The template that cannot be rendered.
    pub failure: Option<RenderError>,
}

/// Evaluates the conditions. `cross` holds the metrics of the running operators, by the name below `.cross`.
pub fn evaluate(
    plan: &AutoscalePlan,
    own: &AutoscaleMetrics,
    cross: &BTreeMap<Key, AutoscaleMetrics>,
    now: Timestamp,
) -> AutoscaleDecision {
    let metrics = own.to_node();
    let entries = cross.iter().map(|(name, figures)| {
        let entry = Map::from_iter([(Key::from("metrics"), figures.to_node())]);
        (name.clone(), Node::Map(entry))
    });
    let others = Node::Map(entries.collect::<Map>());
    let absent = plan
        .cross
        .iter()
        .filter(|(name, _)| !cross.contains_key(name));
    let sources = TemplateData {
        unavailable: absent
            .map(|(name, entry)| {
                let why = format!("no operator `{entry}` runs");
                let path = [Key::from(CROSS), name.clone()].map(PathStep::Field);
                (Path::from_iter(path), why.into())
            })
            .collect(),
        ..TemplateData::default()
    };
    let effects = GateEffects::default();
    // No custom resource is involved: a condition renders nothing with a name of its own.
    let nobody = ObjectKey {
        namespace: None,
        name: "".into(),
    };
    let owner = (GroupKind::parse(""), nobody);
    let data = Data::new()
        .with("metrics", &metrics)
        .with(CROSS, &others)
        .at(now);
    let open = Renderer {
        data: &data,
        budget: &mut EvalBudget::default(),
        frame: Frame {
            owner: (&owner.0, &owner.1),
            sources: &sources,
            effects: &effects,
        },
    }
    .gate(&plan.gate);
    let (holds, failure) = match open {
        Ok(holds) => (holds, None),
        Err(error) => (
            false,
            (error.reason != Reason::Unavailable).then_some(error),
        ),
    };
    AutoscaleDecision {
        holds,
        changes_at: effects.first(),
        failure,
    }
}

/// The state of an autoscaler; it starts with the declared capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AutoscalerState {
    /// The declared capacity is in effect.
    #[default]
    Baseline,
    /// `do` is in effect, and the conditions hold.
    Active,
    /// `do` is still in effect; the conditions have not held since that time.
    Cooling(Timestamp),
}

impl AutoscalerState {
    /// True if `do` is in effect.
    pub fn is_active(self) -> bool {
        self != Self::Baseline
    }

    /// Returns the state after an evaluation: up at once, and back after the conditions have not held for the cooldown.
    #[must_use]
    pub fn after(self, plan: &AutoscalePlan, holds: bool, now: Timestamp) -> Self {
        let since = match self {
            _ if holds => return Self::Active,
            Self::Baseline => return self,
            Self::Active => now,
            Self::Cooling(since) => since,
        };
        if now >= plus(since, plan.cooldown) {
            Self::Baseline
        } else {
            Self::Cooling(since)
        }
    }

    /// Returns when to evaluate again, after an evaluation at `now`: after an interval, or earlier if something is due, such
    /// as a condition that depends on the time.
    pub fn next_look(
        self,
        plan: &AutoscalePlan,
        changes_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Timestamp {
        let cooled = match self {
            Self::Cooling(since) => Some(plus(since, plan.cooldown)),
            Self::Baseline | Self::Active => None,
        };
        let due = cooled.into_iter().chain(changes_at).filter(|at| *at > now);
        due.fold(plus(now, plan.interval), Timestamp::min)
    }
}

fn plus(at: Timestamp, span: std::time::Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_found_by_its_name_and_stands_under_it() {
        let figures = AutoscaleMetrics {
            queue_depth: 41,
            workers: 6,
            autoscale_active: true,
            workers_busy_percent: 83,
            reconcile_duration_p95_ms: 219,
            error_rate_percent: 7,
        };
        for metric in Metric::ALL {
            assert_eq!(Metric::parse(metric.name()), Some(metric));
        }
        assert_eq!(Metric::parse("queuedepth"), None);
        let expected = serde_json::json!({
            "queueDepth": 41, "workers": 6, "autoscaleActive": true, "workersBusyPercent": 83,
            "workersIdlePercent": 17, "reconcileDurationP95Ms": 219, "errorRatePercent": 7,
        });
        assert_eq!(figures.to_node().to_json(), expected);
    }
}
