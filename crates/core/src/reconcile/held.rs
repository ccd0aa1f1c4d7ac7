//! Custom resources that are held back, and those that come back by themselves.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    children::children_data,
    record::Observed,
    render::{Renderer, Setting},
    sources::Sources,
    step::Cycle,
};
use crate::{
    api::duration,
    plan::{HoldPlan, OperatorPlan},
    template::Budget,
};

/// Sooner than that no pass follows another by itself.
const LEAST: Duration = Duration::from_secs(1);

/// Why no pass runs over a custom resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It is not to be queued: nothing is shown.
    NotQueued,
    /// It is not to be reconciled: the operator's health shows it.
    Gated,
}

/// When the gates before a pass turn, if they are open and ask for the time.
///
/// # Errors
/// The pass, which does nothing, where the custom resource is held back or that cannot be told.
pub(super) fn look(
    plan: &OperatorPlan,
    observed: &Observed,
    sources: &Sources,
    now: Timestamp,
) -> Result<Option<Timestamp>, Box<Cycle>> {
    let HoldPlan {
        enqueue, reconcile, ..
    } = &plan.hold;
    if enqueue.is_empty() && reconcile.is_empty() {
        return Ok(None);
    }
    let setting = Setting::of(plan, observed);
    let frame = setting.frame(sources);
    let children = children_data(plan, observed, &plan.field_manager(), frame);
    let data = sources.data(observed).with("children", &children).at(now);
    let nothing_done = |cycle: Cycle| {
        Err(Box::new(Cycle {
            inventory: observed.cr.inventory.clone(),
            wake: setting.turns.first(),
            doubts: setting.turns.doubts(),
            ..cycle
        }))
    };
    for (gate, held) in [(enqueue, Held::NotQueued), (reconcile, Held::Gated)] {
        let mut budget = Budget::default();
        let mut renderer = Renderer {
            data: &data,
            budget: &mut budget,
            frame,
        };
        match renderer.gate(gate) {
            Ok(true) => {}
            Ok(false) => {
                return nothing_done(Cycle {
                    held_back: Some(held),
                    ..Cycle::default()
                });
            }
            Err(error) => return nothing_done(Cycle::untouched(plan, observed, error.into())),
        }
    }
    Ok(setting.turns.first())
}

/// How long after the pass another one follows, if it goes well. What gives no duration is told, and does not count.
pub(super) fn requeue(plan: &OperatorPlan, renderer: &mut Renderer<'_, '_>) -> Option<Duration> {
    let requeue = plan.requeue.as_ref()?;
    *renderer.budget = Budget::default();
    let given = renderer.gate(&requeue.gate).and_then(|open| {
        let after = open.then(|| renderer.text(&requeue.after)).transpose()?;
        Ok(after.filter(|text| !text.is_empty()))
    });
    let turns = renderer.frame.turns;
    let path = &requeue.after.path;
    let length = match given {
        Ok(text) => duration::parse(&text?).map_err(|_| {
            let source = requeue.after.template.source();
            format!("`{source}` must give a duration, such as `5m`")
        }),
        Err(error) => Err(error.message),
    };
    match length {
        Ok(length) if length.is_zero() => None,
        Ok(length) => Some(length.max(LEAST)),
        Err(message) => {
            turns.doubt(path, message);
            None
        }
    }
}
