//! kstatus' algorithm, on which `kubectl wait`, Argo CD and Flux rely, as a check of recorded states. It shares no code with the
//! checked code.
//!
//! Source: kubernetes-sigs/cli-utils, `pkg/kstatus/status/generic.go` and its README, in this order: `deletionTimestamp`;
//! `observedGeneration` that is not the generation; the first of `Reconciling` and `Stalled` that is true, in the order of the
//! list; `Ready`; without any of them an object is current.

use serde_json::Value;

/// The status of an object according to kstatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kstatus {
    Terminating,
    InProgress,
    Failed,
    Current,
}

/// Returns the object's status according to kstatus' algorithm for unknown kinds.
pub(crate) fn kstatus(object: &Value) -> Kstatus {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Kstatus::Terminating;
    }
    let observed = &object["status"]["observedGeneration"];
    if !observed.is_null() && *observed != object["metadata"]["generation"] {
        return Kstatus::InProgress;
    }
    for condition in conditions(object) {
        match (text(condition, "type"), text(condition, "status")) {
            ("Reconciling", "True") => return Kstatus::InProgress,
            ("Stalled", "True") => return Kstatus::Failed,
            _ => {}
        }
    }
    match condition(object, "Ready") {
        Some("True") | None => Kstatus::Current,
        Some(_) => Kstatus::InProgress,
    }
}

/// Returns the violations of the convention in a state that a controller has written. `Ready` must exist. While it is not true,
/// exactly one of `Reconciling` and `Stalled` must exist; while it is true, neither may. If `Suspended` is true, neither is
/// needed, because the object is not reconciled. Both must be true if they exist, no type may occur twice, and each of these
/// three conditions must be about the observed generation.
pub(crate) fn faults(object: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut types: Vec<&str> = conditions(object)
        .iter()
        .map(|one| text(one, "type"))
        .collect();
    types.sort_unstable();
    let all = types.len();
    types.dedup();
    if types.len() < all {
        faults.push(format!("a type occurs twice: {types:?}"));
    }
    let ready = condition(object, "Ready");
    if ready.is_none() {
        faults.push("there is no Ready".to_owned());
    }
    let mut abnormal = 0;
    for kind in ["Reconciling", "Stalled"] {
        match condition(object, kind) {
            Some("True") => abnormal += 1,
            Some(other) => faults.push(format!("{kind} exists but is {other}")),
            None => {}
        }
    }
    let is_halted = abnormal == 0 && condition(object, "Suspended") == Some("True");
    if abnormal != usize::from(ready != Some("True")) && !is_halted {
        faults.push(format!(
            "Ready is {ready:?} with {abnormal} of Reconciling and Stalled"
        ));
    }
    let observed = &object["status"]["observedGeneration"];
    for one in conditions(object) {
        let ours = ["Ready", "Reconciling", "Stalled"].contains(&text(one, "type"));
        if ours && !observed.is_null() && one["observedGeneration"] != *observed {
            faults.push(format!("{one} is not about generation {observed}"));
        }
    }
    faults
}

/// Returns the status of the condition with this type.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let found = conditions(object)
        .iter()
        .find(|one| text(one, "type") == kind)?;
    Some(text(found, "status"))
}

fn conditions(object: &Value) -> &[Value] {
    let all = object
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    all.map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition[field].as_str().unwrap_or_default()
}
