//! The status of a custom resource that a gate or its annotation holds back.

use super::{StatusPatch, own_type, patch, write_conditions};
use crate::reconcile::{
    crd_status::{CONDITIONS, CrdStatus, GENERATION},
    hold_reason::HoldReason,
    record::Observed,
};
use orkestra_language::api::conditions::{self, Condition, ConditionStatus};
use orkestra_object::value::{Map, Node};
use orkestra_plan::OperatorPlan;

/// Returns the patch that makes the status report why no pass runs; none if it already does, or cannot. `detail` is the
/// condition of a gate that does not hold, or who suspended the custom resource; where that is not known, what the status says
/// already stays.
///
/// `Ready` and the others stay as the last pass wrote them, since they still describe its result. If no pass has seen the
/// current spec, `Ready` is false: the children that it declares do not exist yet.
pub fn gated(
    plan: &OperatorPlan,
    crd_status: &CrdStatus,
    observed: &Observed,
    (held, detail): (HoldReason, Option<&str>),
    now: jiff::Timestamp,
) -> Option<StatusPatch> {
    if !plan.status.conditions || !crd_status.status.holds_conditions() {
        return None;
    }
    let live = observed.cr.view.get("status").cloned();
    let live = live.unwrap_or_else(|| Node::Map(Map::default()));
    let said = live.get(CONDITIONS).and_then(Node::as_list);
    let said = said.unwrap_or_default().iter();
    let said = said.filter(|item| own_type(item).is_some());
    let mut said: Vec<Condition> = said.filter_map(Condition::read).collect();
    let (type_, reason) = held.condition();
    let known = said.iter().find(|one| one.type_ == type_);
    let known = known.filter(|one| {
        held == HoldReason::Suspended && detail.is_none() && one.reason == reason.as_str()
    });
    let message = known.map_or_else(|| held.message(detail), |one| one.message.clone());
    let closed = |kind: &str, status| Condition::new(kind, status, reason.as_str(), &message);
    if !is_handled(crd_status, observed, &live, &said) {
        let stale = [
            conditions::READY,
            conditions::RECONCILING,
            conditions::STALLED,
        ];
        said.retain(|one| !stale.contains(&&*one.type_));
        said.push(closed(conditions::READY, ConditionStatus::False));
        said.push(closed(conditions::RECONCILING, ConditionStatus::True));
    }
    said.retain(|one| ![conditions::GATED, conditions::SUSPENDED].contains(&&*one.type_));
    said.push(closed(type_, ConditionStatus::True));
    let mut wanted = live.clone();
    write_conditions(
        plan,
        crd_status,
        (observed, said, Vec::new()),
        &mut wanted,
        now,
    );
    patch(crd_status, observed, &live, &wanted)
}

/// True if a pass has seen the current spec, as far as the status shows.
fn is_handled(
    crd_status: &CrdStatus,
    observed: &Observed,
    live: &Node,
    said: &[Condition],
) -> bool {
    let Some(ready) = said.iter().find(|one| one.type_ == conditions::READY) else {
        return false;
    };
    let noted = live.get(GENERATION).and_then(Node::as_i64);
    let noted = noted.or(ready.observed_generation);
    // Without the subresource the generation changes with every write.
    !crd_status.has_status || noted.is_none_or(|noted| noted == observed.cr.generation)
}
