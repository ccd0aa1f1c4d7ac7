//! Custom resources that are held back, and those that come back by themselves.

use std::time::Duration;

use super::render::{RenderError, Renderer};
use crate::{api::duration, plan::OperatorPlan, template::Budget};

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

/// Whether the custom resource is held back.
///
/// # Errors
/// That of an operand of its gates.
pub(super) fn held(
    plan: &OperatorPlan,
    renderer: &mut Renderer<'_, '_>,
) -> Result<Option<Held>, RenderError> {
    for (gate, held) in [
        (&plan.hold.enqueue, Held::NotQueued),
        (&plan.hold.reconcile, Held::Gated),
    ] {
        *renderer.budget = Budget::default();
        if !renderer.gate(gate)? {
            return Ok(Some(held));
        }
    }
    Ok(None)
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
