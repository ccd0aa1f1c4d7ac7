//! The outcomes of objects: the statuses that Kubernetes' controllers would write.

use super::{super::preview::merge, stored::Stored};
use orkestra_language::api::simulate::{Outcome, OutcomeResult};
use orkestra_object::value::{Key, Node};
use orkestra_plan::ChildKey;

/// The address of load balancers. Source: RFC 5737, addresses for documentation.
const ADDRESS: &str = "192.0.2.1";

/// Applies the outcome of an object at the end of a cycle; returns it as a word.
pub(crate) fn happen(
    key: &ChildKey,
    stored: &mut Stored,
    (rules, cycle): (&[Outcome], u32),
    now: &str,
) -> Option<&'static str> {
    let is_written = stored.written == cycle;
    let is_meant = |rule: &&Outcome| {
        let kind = *rule.kind == *key.kind.kind || rule.kind == key.kind.to_string();
        let fits = |given: &Option<String>, is: Option<&str>| {
            given.as_deref().is_none_or(|given| Some(given) == is)
        };
        kind && fits(&rule.name, Some(&key.object.name))
            && fits(&rule.namespace, key.object.namespace.as_deref())
    };
    let meant: Vec<&Outcome> = rules.iter().filter(is_meant).collect();
    let due = |rule: &&&Outcome| rule.after.map_or(is_written, |after| after == cycle);
    let mut happened = None;
    for rule in meant.iter().filter(due) {
        let result = match (rule.result, &rule.status) {
            (Some(result), _) => Some(result),
            (None, Some(_)) => None,
            (None, None) => Some(OutcomeResult::Ready),
        };
        if let Some(result) = result {
            happened = come(key, stored, result, now).or(happened);
        }
        if let Some(status) = &rule.status {
            set_status(stored, status);
            happened = happened.or(Some("has another status"));
        }
    }
    // An outcome that a rule schedules later has not happened yet.
    if happened.is_none() && is_written {
        let is_later = meant
            .iter()
            .any(|rule| rule.after.is_some_and(|after| after > cycle));
        let is_past = meant
            .iter()
            .any(|rule| rule.after.is_some_and(|after| after <= cycle));
        let default = match (is_later, is_past) {
            (true, _) => OutcomeResult::Stuck,
            (false, true) => return None,
            (false, false) => OutcomeResult::Ready,
        };
        happened = come(key, stored, default, now);
    }
    happened
}

/// Sets the status for a result. Kinds that are ready immediately have none.
fn come(
    key: &ChildKey,
    stored: &mut Stored,
    result: OutcomeResult,
    now: &str,
) -> Option<&'static str> {
    let object = &stored.object;
    let status = match (&*key.kind.group, &*key.kind.kind) {
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet" | "DaemonSet") => {
            workload(key, object, result, now)
        }
        ("batch", "Job") => job(object, result, now),
        ("", "Pod") => pod(result, now),
        ("", "PersistentVolumeClaim") => {
            let phase = if result == OutcomeResult::Ready {
                "Bound"
            } else {
                "Pending"
            };
            Node::object([("phase", Node::from(phase))])
        }
        ("", "Service") if is_load_balanced(object) => {
            let address = Node::object([("ip", Node::from(ADDRESS))]);
            let addresses: Vec<Node> = (result == OutcomeResult::Ready)
                .then_some(address)
                .into_iter()
                .collect();
            let balancer = Node::object([("ingress", Node::from(addresses))]);
            Node::object([("loadBalancer", balancer)])
        }
        // Kinds of Kubernetes itself need no controller here; for others the status is unknown, unless a rule sets it.
        _ if result == OutcomeResult::Ready && object.get("status").is_none() => return None,
        _ => {
            let ready = if result == OutcomeResult::Ready {
                "True"
            } else {
                "False"
            };
            Node::object([(
                "conditions",
                conditions(&[("Ready", ready, "Simulated")], now),
            )])
        }
    };
    set_status(stored, &status);
    Some(match result {
        OutcomeResult::Ready if &*key.kind.kind == "Job" => "is complete",
        OutcomeResult::Ready => "is ready",
        OutcomeResult::Stuck => "is not ready",
        OutcomeResult::Failed => "has failed",
    })
}

fn set_status(stored: &mut Stored, status: &Node) {
    if let Node::Map(map) = &mut stored.object {
        merge(map.entry(&Key::from("status")), status);
    }
}

fn int(object: &Node, parent: &str, field: &str) -> Option<i64> {
    object.get(parent)?.get(field)?.as_i64()
}

fn conditions(all: &[(&str, &str, &str)], now: &str) -> Node {
    let condition = |(kind, status, reason): &(&str, &str, &str)| {
        Node::object([
            ("type", Node::from(*kind)),
            ("status", Node::from(*status)),
            ("reason", Node::from(*reason)),
            ("message", Node::from("as the simulation has it")),
            ("lastTransitionTime", Node::from(now)),
        ])
    };
    Node::from(all.iter().map(condition).collect::<Vec<_>>())
}

/// Returns the status of a workload. Source: Kubernetes, `DeploymentStatus`, `StatefulSetStatus`, `ReplicaSetStatus` and
/// `DaemonSetStatus`.
fn workload(key: &ChildKey, object: &Node, result: OutcomeResult, now: &str) -> Node {
    let generation = int(object, "metadata", "generation").unwrap_or(1);
    let all = int(object, "spec", "replicas").unwrap_or(1);
    let ready = if result == OutcomeResult::Ready {
        all
    } else {
        0
    };
    let revision = Node::from(format!("{}-{generation}", key.object.name));
    let mut fields = vec![("observedGeneration", Node::Int(generation))];
    if &*key.kind.kind == "DaemonSet" {
        let ready = ready.min(1);
        fields.extend([
            ("desiredNumberScheduled", Node::Int(1)),
            ("currentNumberScheduled", Node::Int(1)),
            ("updatedNumberScheduled", Node::Int(1)),
            ("numberMisscheduled", Node::Int(0)),
            ("numberReady", Node::Int(ready)),
            ("numberAvailable", Node::Int(ready)),
        ]);
        return node(fields);
    }
    fields.extend([
        ("replicas", Node::Int(all)),
        ("readyReplicas", Node::Int(ready)),
        ("availableReplicas", Node::Int(ready)),
    ]);
    match &*key.kind.kind {
        "Deployment" => {
            let [available, progressing] = match result {
                OutcomeResult::Ready => [
                    ("Available", "True", "MinimumReplicasAvailable"),
                    ("Progressing", "True", "NewReplicaSetAvailable"),
                ],
                OutcomeResult::Stuck => [
                    ("Available", "False", "MinimumReplicasUnavailable"),
                    ("Progressing", "True", "ReplicaSetUpdated"),
                ],
                OutcomeResult::Failed => [
                    ("Available", "False", "MinimumReplicasUnavailable"),
                    ("Progressing", "False", "ProgressDeadlineExceeded"),
                ],
            };
            fields.push(("updatedReplicas", Node::Int(all)));
            fields.push(("conditions", conditions(&[available, progressing], now)));
        }
        "StatefulSet" => fields.extend([
            ("updatedReplicas", Node::Int(all)),
            ("currentReplicas", Node::Int(all)),
            ("currentRevision", revision.clone()),
            ("updateRevision", revision),
        ]),
        _ => {}
    }
    node(fields)
}

fn node(fields: Vec<(&str, Node)>) -> Node {
    Node::Map(
        fields
            .into_iter()
            .map(|(key, value)| (Key::from(key), value))
            .collect(),
    )
}

/// Returns the status of a Job. Source: Kubernetes, `JobStatus`.
fn job(object: &Node, result: OutcomeResult, now: &str) -> Node {
    let wanted = int(object, "spec", "completions").unwrap_or(1);
    let tries = int(object, "spec", "backoffLimit").unwrap_or(6) + 1;
    let start = ("startTime", Node::from(now));
    match result {
        OutcomeResult::Ready => node(vec![
            start,
            ("completionTime", Node::from(now)),
            ("active", Node::Null),
            ("succeeded", Node::Int(wanted)),
            (
                "conditions",
                conditions(&[("Complete", "True", "CompletionsReached")], now),
            ),
        ]),
        OutcomeResult::Stuck => node(vec![start, ("active", Node::Int(wanted))]),
        OutcomeResult::Failed => node(vec![
            start,
            ("active", Node::Null),
            ("failed", Node::Int(tries)),
            (
                "conditions",
                conditions(&[("Failed", "True", "BackoffLimitExceeded")], now),
            ),
        ]),
    }
}

fn pod(result: OutcomeResult, now: &str) -> Node {
    let (phase, ready, reason) = match result {
        OutcomeResult::Ready => ("Running", "True", "PodReady"),
        OutcomeResult::Stuck => ("Pending", "False", "ContainersNotReady"),
        OutcomeResult::Failed => ("Failed", "False", "PodFailed"),
    };
    let conditions = conditions(&[("Ready", ready, reason)], now);
    Node::object([("phase", Node::from(phase)), ("conditions", conditions)])
}

fn is_load_balanced(service: &Node) -> bool {
    let kind = service
        .get("spec")
        .and_then(|spec| spec.get("type")?.as_str());
    kind == Some("LoadBalancer")
}
