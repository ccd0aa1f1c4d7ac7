//! `autoscale` of a workload: conditions for more or fewer pods.

use std::time::Duration;

use super::conditions;
use crate::scope::At;
use orkestra_language::{
    api::{
        Gates, Scalar,
        autoscale::{ScaleDown, ScaleUp, WorkloadAutoscale},
    },
    diagnostics::Code,
};
use orkestra_plan::{ChildPlan, Coerce, Mode, ScalePlan, ScaleStep};

/// Default minimum time between two changes.
const DEFAULT_COOLDOWN: Duration = Duration::from_mins(1);

/// Returns `child` with the autoscaler declared at `at`, if any.
pub(crate) fn scaled(
    mut child: ChildPlan,
    at: &At<'_>,
    declared: Option<&WorkloadAutoscale>,
) -> ChildPlan {
    let Some(declared) = declared else {
        return child;
    };
    if child.mode == Mode::Once {
        let message = "a child that is created once is not changed: this has no effect";
        at.warn_hint(Code::NoEffect, message, "move the entry to `onReconcile`");
    }
    child.scale = Some(Box::new(plan(at, declared)));
    child
}

fn plan(at: &At<'_>, declared: &WorkloadAutoscale) -> ScalePlan {
    let WorkloadAutoscale {
        min,
        max,
        cooldown,
        scale_up,
        scale_down,
    } = declared;
    let number = |field: &str, scalar: &Option<Scalar>| {
        let at = at.field(field);
        let leaf = at.leaf(&scalar.as_ref()?.to_string(), Coerce::Int)?;
        at_least(&at, scalar.as_ref(), 0);
        Some(leaf)
    };
    let plan = ScalePlan {
        min: number("min", min),
        max: number("max", max),
        cooldown: cooldown.map_or(DEFAULT_COOLDOWN, |span| span.0),
        up: scale_up.as_ref().map(|declared| {
            let ScaleUp {
                conditions,
                increment,
            } = declared;
            step(
                &at.field("scaleUp"),
                conditions.as_ref(),
                ("increment", increment.as_ref()),
            )
        }),
        down: scale_down.as_ref().map(|declared| {
            let ScaleDown {
                conditions,
                decrement,
            } = declared;
            step(
                &at.field("scaleDown"),
                conditions.as_ref(),
                ("decrement", decrement.as_ref()),
            )
        }),
    };
    if let (Some(min), Some(max)) = (min.as_ref().and_then(whole), max.as_ref().and_then(whole))
        && max < min
    {
        let message = format!("`max` is less than `min`, which is {min}");
        at.field("max").error(Code::OutOfRange, message);
    }
    if plan.up.is_none() && plan.down.is_none() {
        at.error_hint(
            Code::Missing,
            "an autoscaler without `scaleUp` and `scaleDown` changes nothing",
            "add one of them, with `conditions`",
        );
    }
    plan
}

fn step(at: &At<'_>, gates: Option<&Gates>, (field, by): (&str, Option<&Scalar>)) -> ScaleStep {
    let none = Gates::default();
    let Gates { when, or } = gates.unwrap_or(&none);
    if when.is_empty() && or.is_empty() {
        at.error_hint(
            Code::Missing,
            "without conditions the number of pods would never stop changing",
            "add `conditions` with a `when`",
        );
    }
    let place = at.field(field);
    at_least(&place, by, 1);
    ScaleStep {
        gate: conditions::gate(&at.field("conditions"), when, or),
        by: by.and_then(|by| place.leaf(&by.to_string(), Coerce::Int)),
    }
}

/// Reports a literal number that is too small.
fn at_least(at: &At<'_>, scalar: Option<&Scalar>, least: i64) {
    if scalar.and_then(whole).is_some_and(|number| number < least) {
        at.error(Code::OutOfRange, format!("at least {least} is needed"));
    }
}

fn whole(scalar: &Scalar) -> Option<i64> {
    scalar.to_string().trim().parse().ok()
}
