//! `autoscale`: the conditions for another capacity, and that capacity.

use std::{collections::BTreeMap, time::Duration};

use super::{conditions, reconciler::OperatorPace};
use crate::scope::At;
use orkestra_language::{
    api::{
        Gates,
        autoscale::{Autoscale, Capacity},
    },
    diagnostics::{Code, did_you_mean},
};
use orkestra_object::value::{Key, Path, PathStep};
use orkestra_plan::{AutoscalePlan, CapacityPlan, Gate, Metric, describe};

/// Default interval of evaluating conditions.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(15);
/// Default time that conditions must not hold before the baseline returns.
const DEFAULT_COOLDOWN: Duration = Duration::from_mins(2);
/// Shortest interval: measuring is cheap, but not free.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// The names that conditions can use.
pub(crate) struct ConditionNames<'a> {
    /// The aliases of the operatorBox's `cross`, with the entry that each reads.
    pub(crate) cross: BTreeMap<&'a str, &'a str>,
    /// The entries of the Katalog.
    pub(crate) entries: Vec<&'a str>,
}

/// Compiles the autoscaler declared at `at`, for an operator with that pace.
pub(crate) fn autoscale(
    at: &At<'_>,
    declared: &Autoscale,
    pace: &OperatorPace,
    names: &ConditionNames<'_>,
) -> Option<AutoscalePlan> {
    let profile;
    let (at_conditions, declared) = match &declared.profile {
        None => (at.field("conditions"), declared),
        Some(name) => {
            let field = at.field("profile");
            exclusive(&field, declared);
            profile = super::capacity::profile(&field, name, pace)?;
            (field, &profile)
        }
    };
    let interval = declared.interval.map_or(DEFAULT_INTERVAL, |span| span.0);
    if interval < SHORTEST_INTERVAL {
        let message = "the interval must be at least 100ms";
        at.field("interval").error(Code::OutOfRange, message);
    }
    let gates = declared.conditions.clone().unwrap_or_default();
    if gates.when.is_empty() && gates.or.is_empty() {
        at.error_hint(
            Code::Missing,
            "an autoscaler without conditions",
            "add `conditions` with a `when`, such as `field: metrics.queueDepth` and `greaterThan: 300`",
        );
    }
    let Capacity {
        workers,
        queue_depth,
        resync,
    } = declared.do_.clone().unwrap_or_default();
    if (workers, queue_depth, resync) == (None, None, None) {
        at.error_hint(
            Code::Missing,
            "an autoscaler without `do` changes nothing",
            "add `do` with `workers`, `queueDepth` or `resync`",
        );
    }
    let gate = gate(&at_conditions, &gates);
    let mut plan = AutoscalePlan {
        interval,
        cooldown: declared.cooldown.map_or(DEFAULT_COOLDOWN, |span| span.0),
        cross: reads(&at_conditions, &gate, names),
        gate,
        capacity: CapacityPlan {
            workers: workers.map(|workers| usize::try_from(workers).unwrap_or(1)),
            queue_depth,
            resync: resync.map(|span| span.0),
        },
        hash: String::new(),
    };
    plan.hash = describe::autoscale_hash(&plan);
    Some(plan)
}

/// Reports the fields set beside a profile.
fn exclusive(at: &At<'_>, declared: &Autoscale) {
    let Autoscale {
        interval,
        cooldown,
        conditions,
        do_,
        profile: _,
    } = declared;
    let set = [
        ("interval", interval.is_some()),
        ("cooldown", cooldown.is_some()),
        ("conditions", conditions.is_some()),
        ("do", do_.is_some()),
    ];
    let set: Vec<_> = (set.iter().filter(|(_, is_set)| *is_set))
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if !set.is_empty() {
        let message = format!("`profile` and {} are mutually exclusive", set.join(", "));
        at.error_hint(Code::Exclusive, message, "remove `profile`, or the others");
    }
}

fn gate(at: &At<'_>, gates: &Gates) -> Gate {
    let Gates { when, or } = gates;
    conditions::gate(at, when, or)
}

/// Returns the operators whose metrics the gate reads, by alias; other reads are reported.
fn reads(at: &At<'_>, gate: &Gate, names: &ConditionNames<'_>) -> Box<[(Key, Box<str>)]> {
    let mut cross = BTreeMap::new();
    for condition in gate.iter() {
        let place = at.place(&condition.path).shared();
        condition.visit_reads(&mut |path| {
            if let Some(alias) = metric(&place, path) {
                let entry = entry(&place, &alias, names);
                cross.insert(alias, entry);
            }
        });
    }
    cross.into_iter().collect()
}

/// Returns the alias of another operator's metric; a path that is not a metric is reported.
fn metric(at: &At<'_>, path: &Path) -> Option<Key> {
    let fields: Vec<&str> = path
        .steps()
        .iter()
        .map(|step| match step {
            PathStep::Field(name) => name.as_str(),
            PathStep::Index(_) => "",
        })
        .collect();
    let (alias, metric) = match fields.as_slice() {
        ["metrics", metric] => (None, *metric),
        ["cross", alias, "metrics", metric] => (Some(Key::from(*alias)), *metric),
        _ => {
            at.error_hint(
                Code::UnknownMetric,
                format!("`{path}` is not a metric: an autoscaler cannot read custom resources"),
                "write `metrics.<name>`, or `cross.<as>.metrics.<name>` for another operator's",
            );
            return None;
        }
    };
    if Metric::parse(metric).is_none() {
        let names = Metric::ALL.map(Metric::name);
        let hint = did_you_mean(metric, names)
            .unwrap_or_else(|| format!("there are {}", names.join(", ")));
        at.error_hint(
            Code::UnknownMetric,
            format!("there is no metric `{metric}`"),
            hint,
        );
    }
    alias
}

/// Returns the entry of an alias: from the operatorBox's `cross`, else the entry with that name.
fn entry(at: &At<'_>, alias: &Key, names: &ConditionNames<'_>) -> Box<str> {
    if let Some(entry) = names.cross.get(alias.as_str()) {
        return (*entry).into();
    }
    // Another Katalog may have the entry; until one does, the condition is false.
    let entries = || names.entries.iter().copied();
    if entries().all(|entry| entry != alias.as_str())
        && let Some(hint) = did_you_mean(alias, entries())
    {
        let message = format!("there is no operator `{alias}` here");
        at.warn_hint(Code::UnknownOperator, message, hint);
    }
    alias.as_str().into()
}
