//! The status of a custom resource that a gate holds back.

use super::{StatusPatch, own_condition, own_type, patch, write_conditions};
use crate::{
    api::conditions::{self, Condition, ConditionStatus},
    plan::OperatorPlan,
    reconcile::{
        crd_status::{CONDITIONS, CrdStatus, GENERATION},
        hold_reason::HoldReason,
        reason::Reason,
        record::Observed,
    },
    value::{Map, Node},
};

/// Returns the patch that makes the status report a closed gate; none if it already does, or cannot.
///
/// `Ready` and the others stay as the last pass wrote them, since they still describe its result. If no pass has seen the
/// current spec, `Ready` is false: the children that it declares do not exist yet.
pub fn gated(
    plan: &OperatorPlan,
    crd_status: &CrdStatus,
    observed: &Observed,
    (held, unmet): (HoldReason, Option<&str>),
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
    let mut said: Vec<Condition> = said.filter_map(|item| own_condition(plan, item)).collect();
    let message = held.message(unmet);
    let closed =
        |kind: &str, status| Condition::new(kind, status, Reason::GateClosed.as_str(), &message);
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
    said.retain(|one| one.type_ != conditions::GATED);
    said.push(closed(conditions::GATED, ConditionStatus::True));
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
