//! The built-in profiles of `autoscale`: each is relative to the operator's declared capacity.

use std::time::Duration;

use super::reconciler::OperatorPace;
use crate::scope::At;
use orkestra_language::{
    api::{
        GateCondition, Gates, Scalar,
        autoscale::{Autoscale, Capacity},
        duration::Span,
    },
    diagnostics::{Code, nearest_or_all},
};

/// The names of the profiles.
const NAMES: [&str; 5] = [
    "batch",
    "burst",
    "cost-optimized",
    "latency-sensitive",
    "steady",
];

/// Returns the autoscaler of the profile `name`, for the field at `at`; an unknown profile is reported.
///
/// Source: language reference, built-in profile values. Shares of the queue refer to the queue depth that applies while the
/// profile is active.
// Over 60 lines: a table, an arm for each profile.
pub(crate) fn profile(at: &At<'_>, name: &str, pace: &OperatorPace) -> Option<Autoscale> {
    let name = name.trim().to_lowercase();
    let (workers, depth) = (pace.workers, pace.queue.max_depth);
    let capacity = |workers: u32, depth: u32| Capacity {
        workers: Some(workers.clamp(1, super::reconciler::MOST_WORKERS)),
        queue_depth: Some(depth),
        resync: None,
    };
    let (do_, times, conditions) = match name.as_str() {
        "burst" => {
            let depth = depth.saturating_mul(10);
            (
                capacity(workers.saturating_mul(4), depth),
                (5, 30),
                vec![fuller(depth, 60)],
            )
        }
        "steady" => {
            let depth = depth.saturating_mul(3);
            (
                capacity(workers.saturating_mul(2), depth),
                (30, 120),
                vec![fuller(depth, 40), above("metrics.workersBusyPercent", 70)],
            )
        }
        "batch" => (
            capacity(workers.saturating_mul(3), depth.saturating_mul(8)),
            (60, 300),
            vec![nightly()],
        ),
        "latency-sensitive" => (
            Capacity {
                workers: capacity(workers.saturating_mul(5).div_ceil(2), 0).workers,
                ..Capacity::default()
            },
            (15, 60),
            vec![above("metrics.reconcileDurationP95Ms", 200)],
        ),
        "cost-optimized" => (
            capacity(workers / 2, depth / 2),
            (30, 600),
            vec![
                above("metrics.workersIdlePercent", 60),
                fuller(depth / 2, 80),
            ],
        ),
        _ => {
            unknown(at, &name);
            return None;
        }
    };
    if depth == 0 && ["burst", "steady", "cost-optimized"].contains(&name.as_str()) {
        at.error_hint(
            Code::NoDepth,
            format!("`{name}` depends on the maximum depth of the queue, and none is declared"),
            "add `reconciler.queue.maxDepth`",
        );
        return None;
    }
    let seconds = |seconds| Some(Span(Duration::from_secs(seconds)));
    Some(Autoscale {
        interval: seconds(times.0),
        cooldown: seconds(times.1),
        conditions: Some(Gates {
            when: conditions,
            or: Vec::new(),
        }),
        do_: Some(do_),
        profile: None,
    })
}

fn unknown(at: &At<'_>, name: &str) {
    let hint = nearest_or_all(name, "", NAMES);
    let message = format!("there is no profile `{name}` for autoscale");
    at.error_hint(Code::UnknownProfile, message, hint);
}

/// A condition: more keys wait than that percentage of a full queue.
fn fuller(depth: u32, percent: i64) -> GateCondition {
    above("metrics.queueDepth", i64::from(depth) * percent / 100)
}

fn above(field: &str, number: i64) -> GateCondition {
    GateCondition {
        field: Some(field.into()),
        greater_than: Some(Scalar::from(number)),
        ..GateCondition::default()
    }
}

/// A condition: three hours from 23:00 UTC.
fn nightly() -> GateCondition {
    GateCondition {
        cron: Some("0 23 * * *".into()),
        duration: Some(Span(Duration::from_hours(3))),
        ..GateCondition::default()
    }
}
