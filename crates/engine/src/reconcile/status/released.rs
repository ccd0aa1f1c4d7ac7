//! The status of a custom resource that is no longer operated.

use super::{CONDITIONS, GENERATION, own_type};
use orkestra_language::{
    api::conditions::{self, Condition, ConditionStatus},
    reasons::Remark,
};
use orkestra_object::value::Node;

/// Returns the conditions of a custom resource that no operator reconciles any more: `Ready` is unknown, and what the operator
/// reported beside it is gone. None if its status reports no pass, or says so already.
///
/// `status` is its status, `why` names the Katalog.
pub fn released(status: &Node, why: &str, now: jiff::Timestamp) -> Option<Node> {
    let listed = status.get(CONDITIONS)?.as_list()?;
    let ours = listed.iter().filter(|item| own_type(item).is_some());
    let existing: Vec<Condition> = ours.filter_map(Condition::read).collect();
    let ready = existing.iter().find(|one| one.type_ == conditions::READY)?;
    let reason = Remark::NotOperated.as_str();
    if ready.reason == reason {
        return None;
    }
    let at = status.get(GENERATION).and_then(Node::as_i64);
    let at = ready.observed_generation.or(at);
    let unknown = ConditionStatus::Unknown;
    let wanted = Condition::new(conditions::READY, unknown, reason, why).observed(at);
    let mut merged = conditions::merge(&existing, &[wanted], now);
    // Those that are not there only while they are true describe the last pass, which no longer counts.
    merged.retain(|one| one.type_ == conditions::READY);
    let ready = merged.pop()?;
    let items = listed.iter().filter_map(|item| match own_type(item) {
        None => Some(item.clone()),
        Some(conditions::READY) => Some(Node::Map(ready.fields().collect())),
        Some(_) => None,
    });
    Some(Node::List(items.collect::<Vec<_>>().into()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ready_is_unknown_and_conditions_of_others_stay() {
        let status = Node::from(
            &json!({ "phase": "Up", "observedGeneration": 3, "conditions": [
            { "type": "Approved", "status": "True" },
            { "type": "Ready", "status": "True", "reason": "ReconcileSucceeded", "message": "everything is as declared",
              "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 3 },
            { "type": "FieldConflict", "status": "True", "reason": "FieldConflict" },
        ] }),
        );
        let now = "2026-02-02T00:00:00Z".parse().unwrap();
        let conditions = released(&status, "Katalog shop/waters is deleted", now).unwrap();
        assert_eq!(
            conditions.to_json(),
            json!([
                { "type": "Approved", "status": "True" },
                { "type": "Ready", "status": "Unknown", "reason": "NotOperated",
                  "message": "Katalog shop/waters is deleted",
                  "lastTransitionTime": "2026-02-02T00:00:00Z", "observedGeneration": 3 },
            ])
        );
        let again = Node::object([("conditions", conditions)]);
        assert_eq!(released(&again, "x", now), None);
        assert_eq!(released(&Node::from(&json!({})), "x", now), None);
    }
}
