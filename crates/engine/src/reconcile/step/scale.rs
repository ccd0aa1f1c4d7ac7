//! The replica count of a workload that scales by conditions.

use super::pass::Pass;
use crate::reconcile::{
    reason::Reason,
    render::{RenderError, Renderer},
    scale::{WorkloadScale, decide, replicas},
};
use orkestra_language::api::names;
use orkestra_object::value::{Node, Path, set};
use orkestra_plan::{ChildKey, Leaf, REPLICAS, ScalePlan, ScaleStep};

impl Pass<'_, '_> {
    /// Sets the replica count in `object`, and the time of its last change. Returns the live count from which it was decided.
    pub(crate) fn scale(
        &self,
        renderer: &mut Renderer<'_, '_>,
        object: &mut Node,
        key: &ChildKey,
        plan: &ScalePlan,
    ) -> Result<Option<i64>, RenderError> {
        let count = Path::of_fields(REPLICAS);
        let stamp = Path::of_fields(["metadata", "annotations", names::ANNOTATION_SCALED_AT]);
        let record = self.observed.child(key);
        let live = record.and_then(|record| replicas(record));
        let changed_at = record.and_then(|record| record.view.at(&stamp)?.as_str()?.parse().ok());
        let start = object.at(&count).and_then(Node::as_i64).unwrap_or(1);
        let min = number(renderer, plan.min.as_ref(), 1)?.max(0);
        let max = number(renderer, plan.max.as_ref(), i64::from(i32::MAX))?;
        let up = step(renderer, plan.up.as_ref())?;
        let scaled = decide(
            &WorkloadScale {
                live,
                changed_at,
                start,
                min,
                max,
                cooldown: plan.cooldown,
                up,
                down: step(renderer, plan.down.as_ref())?,
            },
            self.now,
        );
        if let Some(moment) = scaled.again_at {
            self.frame.effects.at(moment);
        }
        set(object, &count, Node::from(scaled.replicas));
        if let Some(changed_at) = scaled.changed_at {
            set(object, &stamp, Node::from(changed_at.to_string()));
        }
        Ok(live)
    }
}

/// Returns the change of the count; none if the conditions do not hold, or read data that is unavailable now.
fn step(
    renderer: &mut Renderer<'_, '_>,
    step: Option<&ScaleStep>,
) -> Result<Option<i64>, RenderError> {
    let Some(step) = step else {
        return Ok(None);
    };
    match renderer.gate(&step.gate) {
        Ok(true) => Ok(Some(number(renderer, step.by.as_ref(), 1)?.max(0))),
        Ok(false) => Ok(None),
        Err(error) if error.reason == Reason::Unavailable => Ok(None),
        Err(error) => Err(error),
    }
}

fn number(
    renderer: &mut Renderer<'_, '_>,
    leaf: Option<&Leaf>,
    default: i64,
) -> Result<i64, RenderError> {
    let Some(leaf) = leaf else {
        return Ok(default);
    };
    Ok(renderer
        .leaf(leaf)?
        .and_then(|number| number.as_i64())
        .unwrap_or(default))
}
