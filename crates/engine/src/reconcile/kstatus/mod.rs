//! Computes the readiness of an object, by the rules that `kubectl wait`, Argo CD and Flux share.
//!
//! Source: kubernetes-sigs/cli-utils, `pkg/kstatus`.

use orkestra_object::value::{Fault, Node, Path};
use orkestra_plan::GroupKind;

/// The readiness of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It matches its spec.
    Current,
    /// It is in progress; the text says what it waits for.
    InProgress(Box<str>),
    /// It will not become ready without a change; the text says why.
    Failed(Box<str>),
    /// It cannot be read.
    Unreadable(Box<Fault>),
}

/// What an object waits for whose controller has not written a status yet.
const UNOBSERVED: &str = "its controller has not observed it yet";
/// What an object waits for whose status is of an earlier generation.
const OUTDATED: &str = "its controller has not seen the latest spec";

impl Readiness {
    /// True if the object's controller has not acted on its spec yet: what is behind the object says nothing about it.
    pub fn is_unobserved(&self) -> bool {
        matches!(self, Self::InProgress(text) if [UNOBSERVED, OUTDATED].contains(&&**text))
    }

    /// Returns the bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Current => 0,
            Self::InProgress(text) | Self::Failed(text) => text.len(),
            Self::Unreadable(_) => size_of::<Fault>(),
        }
    }
}

/// The fields that determine readiness, for all kinds.
const FIELDS: [&[&str]; 19] = [
    &["metadata", "deletionTimestamp"],
    &["metadata", "generation"],
    &["spec", "replicas"],
    &["spec", "type"],
    &["spec", "updateStrategy", "type"],
    &["spec", "updateStrategy", "rollingUpdate", "partition"],
    &["status", "currentRevision"],
    &["status", "updateRevision"],
    &["status", "observedGeneration"],
    &["status", "replicas"],
    &["status", "updatedReplicas"],
    &["status", "readyReplicas"],
    &["status", "availableReplicas"],
    &["status", "desiredNumberScheduled"],
    &["status", "updatedNumberScheduled"],
    &["status", "numberAvailable"],
    &["status", "phase"],
    &["status", "conditions"],
    &["status", "loadBalancer", "ingress"],
];

/// Returns the fields that [`readiness`] reads.
pub(crate) fn read_paths() -> impl Iterator<Item = Path> {
    FIELDS
        .iter()
        .map(|fields| Path::of_fields(fields.iter().copied()))
}

/// Returns the readiness of `object`, of kind `kind`.
pub fn readiness(kind: &GroupKind, object: &Node) -> Readiness {
    if object.meta("deletionTimestamp").is_some() {
        return progress("being deleted");
    }
    let generation = object
        .get("metadata")
        .and_then(|meta| int(meta, "generation"));
    let status = object.get("status");
    if let (Some(generation), Some(observed)) = (
        generation,
        status.and_then(|status| int(status, "observedGeneration")),
    ) && observed != generation
    {
        return progress(OUTDATED);
    }
    match (&*kind.group, &*kind.kind) {
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "ReplicaSet") => replicas(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("batch", "Job") => job(object),
        ("", "Pod") => pod(object),
        ("", "PersistentVolumeClaim") => phase(object, "Bound"),
        ("", "Service") => service(object),
        _ => by_conditions(object),
    }
}

fn progress(text: impl Into<Box<str>>) -> Readiness {
    Readiness::InProgress(text.into())
}

fn int(node: &Node, field: &str) -> Option<i64> {
    node.get(field)?.as_i64()
}

fn status_int(object: &Node, field: &str) -> i64 {
    object
        .get("status")
        .and_then(|status| int(status, field))
        .unwrap_or_default()
}

fn spec_replicas(object: &Node) -> i64 {
    object
        .get("spec")
        .and_then(|spec| int(spec, "replicas"))
        .unwrap_or(1)
}

/// Returns the status of the condition of that type, and the condition.
fn condition<'a>(object: &'a Node, kind: &str) -> Option<(&'a str, &'a Node)> {
    let conditions = object.get("status")?.get("conditions")?.as_list()?;
    let found = conditions
        .iter()
        .find(|condition| condition.get("type").and_then(Node::as_str) == Some(kind))?;
    Some((found.get("status")?.as_str()?, found))
}

fn message(condition: &Node) -> Box<str> {
    let text = |field| {
        condition
            .get(field)
            .and_then(Node::as_str)
            .filter(|text| !text.is_empty())
    };
    text("message")
        .or_else(|| text("reason"))
        .unwrap_or("no message")
        .into()
}

fn deployment(object: &Node) -> Readiness {
    if let Some(("False", found)) = condition(object, "Progressing") {
        return Readiness::Failed(message(found));
    }
    let wanted = spec_replicas(object);
    // Without an observedGeneration its controller has not observed it yet.
    if object
        .get("status")
        .and_then(|status| int(status, "observedGeneration"))
        .is_none()
    {
        return progress(UNOBSERVED);
    }
    let [replicas, updated, ready, available] = [
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ]
    .map(|field| status_int(object, field));
    if updated < wanted {
        progress(format!("{updated} of {wanted} replicas updated"))
    } else if replicas > wanted {
        progress(format!(
            "{} old replicas are pending termination",
            replicas - wanted
        ))
    } else if available < wanted || ready < wanted {
        progress(format!(
            "{} of {wanted} replicas available",
            available.min(ready)
        ))
    } else {
        Readiness::Current
    }
}

/// Returns the readiness of a `StatefulSet`. A rollout in progress is not current: every replica above the partition must
/// have the update revision. With `OnDelete` the user who deletes the pods decides when they follow.
fn stateful_set(object: &Node) -> Readiness {
    let found = replicas(object);
    let strategy = object
        .get("spec")
        .and_then(|spec| spec.get("updateStrategy"));
    let kind = strategy.and_then(|strategy| strategy.get("type")?.as_str());
    if found != Readiness::Current || kind == Some("OnDelete") {
        return found;
    }
    let partition = strategy
        .and_then(|strategy| strategy.get("rollingUpdate"))
        .and_then(|rolling| int(rolling, "partition"));
    let wanted = spec_replicas(object).saturating_sub(partition.unwrap_or_default());
    let updated = status_int(object, "updatedReplicas");
    if updated < wanted {
        return progress(format!("{updated} of {wanted} replicas updated"));
    }
    let status = object.get("status");
    let revision = |field| status.and_then(|status| status.get(field)?.as_str());
    if partition.unwrap_or_default() <= 0
        && revision("currentRevision") != revision("updateRevision")
    {
        return progress("the rollout of its update revision is not complete");
    }
    Readiness::Current
}

fn replicas(object: &Node) -> Readiness {
    let (wanted, ready) = (spec_replicas(object), status_int(object, "readyReplicas"));
    let all = status_int(object, "replicas");
    if object
        .get("status")
        .and_then(|status| int(status, "observedGeneration"))
        .is_none()
    {
        return progress(UNOBSERVED);
    }
    if ready < wanted {
        progress(format!("{ready} of {wanted} replicas ready"))
    } else if all > wanted {
        progress(format!("{} excess replicas remain", all - wanted))
    } else {
        Readiness::Current
    }
}

fn daemon_set(object: &Node) -> Readiness {
    let Some(wanted) = object
        .get("status")
        .and_then(|status| int(status, "desiredNumberScheduled"))
    else {
        return progress(UNOBSERVED);
    };
    let ready =
        status_int(object, "updatedNumberScheduled").min(status_int(object, "numberAvailable"));
    if ready < wanted {
        progress(format!("{ready} of {wanted} pods available"))
    } else {
        Readiness::Current
    }
}

fn job(object: &Node) -> Readiness {
    if let Some(("True", found)) = condition(object, "Failed") {
        return Readiness::Failed(message(found));
    }
    match condition(object, "Complete") {
        Some(("True", _)) => Readiness::Current,
        _ => progress("not complete"),
    }
}

fn pod(object: &Node) -> Readiness {
    match object
        .get("status")
        .and_then(|status| status.get("phase"))
        .and_then(Node::as_str)
    {
        Some("Succeeded") => Readiness::Current,
        Some("Failed") => Readiness::Failed("the pod failed".into()),
        _ => match condition(object, "Ready") {
            Some(("True", _)) => Readiness::Current,
            _ => progress("the pod is not ready"),
        },
    }
}

fn phase(object: &Node, wanted: &str) -> Readiness {
    match object
        .get("status")
        .and_then(|status| status.get("phase"))
        .and_then(Node::as_str)
    {
        Some(phase) if phase == wanted => Readiness::Current,
        Some(phase) => progress(format!("phase is {phase}")),
        None => progress("no phase yet"),
    }
}

fn service(object: &Node) -> Readiness {
    let balanced = object
        .get("spec")
        .and_then(|spec| spec.get("type"))
        .and_then(Node::as_str)
        == Some("LoadBalancer");
    let addressed = object
        .get("status")
        .and_then(|status| status.get("loadBalancer")?.get("ingress")?.as_list())
        .is_some_and(|ingress| !ingress.is_empty());
    if balanced && !addressed {
        progress("no load balancer address yet")
    } else {
        Readiness::Current
    }
}

/// Returns the readiness of objects without rules of their own: `Reconciling` and `Stalled` first, then `Ready`; without
/// conditions they are current.
fn by_conditions(object: &Node) -> Readiness {
    if let Some(("True", found)) = condition(object, "Stalled") {
        return Readiness::Failed(message(found));
    }
    if let Some(("True", found)) = condition(object, "Reconciling") {
        return progress(message(found));
    }
    match condition(object, "Ready") {
        Some(("True", _)) | None => Readiness::Current,
        Some((_, found)) => progress(message(found)),
    }
}

#[cfg(test)]
mod tests;
