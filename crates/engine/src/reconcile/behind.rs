//! Why a child is not ready yet: what the Pods and Events behind it say. Pure.
//!
//! ```text
//!  awaited child ── selector ──► Pods ──────── trouble ──┐
//!        └──────── events_of ──► Events ─ newest Warning ┴──► one cause, for the condition `Ready`
//! ```

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{reason::Reason, record::CrRecord};
use orkestra_language::api::conditions::{self, Condition, cut};
use orkestra_object::value::Node;
use orkestra_plan::ChildKey;

/// The bytes of a cause.
const CAUSE_BYTES: usize = 300;
/// Why a container waits without any trouble.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// Returns the label selector of the Pods of `workload`, in the syntax of `kubectl -l`; none if it selects by more than labels.
pub fn selector(workload: &Node) -> Option<String> {
    let selector = workload.get("spec")?.get("selector")?;
    if selector.get("matchExpressions").is_some() {
        return None;
    }
    let labels = selector.get("matchLabels")?.as_map()?;
    let labels = labels
        .iter()
        .map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    let labels: Vec<String> = labels.collect::<Option<_>>()?;
    (!labels.is_empty()).then(|| labels.join(","))
}

/// Returns the field selector of the Warnings about an object.
pub fn events_of(uid: &str) -> String {
    format!("involvedObject.uid={uid},type=Warning")
}

/// Describes what keeps these Pods from being ready: the most frequent trouble, with the first Pod that has it.
pub fn trouble_of_pods(pods: &[Node]) -> Option<String> {
    let mut troubles: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in pods {
        if let Some(trouble) = trouble(pod) {
            let name = pod.meta_text("name").unwrap_or_default();
            troubles.entry(trouble).or_default().push(name);
        }
    }
    let (trouble, pods) = troubles.iter().max_by_key(|(_, pods)| pods.len())?;
    let first = pods.iter().min()?;
    let more = match pods.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    Some(cut(&format!("Pod {first}{more}: {trouble}"), CAUSE_BYTES))
}

/// Describes the newest of the Warnings about an object.
pub fn trouble_of_events(events: &[Node]) -> Option<String> {
    let newest = events
        .iter()
        .max_by_key(|event| time(event).map(str::to_owned))?;
    let text = |field: &str| newest.get(field).and_then(Node::as_str);
    let message = text("message").unwrap_or_default();
    Some(cut(&format!("{}: {message}", text("reason")?), CAUSE_BYTES))
}

/// Returns when an Event was last seen. The texts of one API server sort as times.
fn time(event: &Node) -> Option<&str> {
    let series = event
        .get("series")
        .and_then(|series| series.get("lastObservedTime"));
    let times = [series, event.get("lastTimestamp"), event.get("eventTime")];
    let mut times = times.into_iter().flatten().filter_map(Node::as_str);
    times
        .next()
        .or_else(|| event.meta_text("creationTimestamp"))
}

/// Returns why a Pod is not ready: it cannot be scheduled, an image cannot be pulled, a container crashes.
pub fn trouble(pod: &Node) -> Option<String> {
    let status = pod.get("status")?;
    let conditions = status.get("conditions").and_then(Node::as_list);
    let scheduled = conditions.unwrap_or_default().iter().find(|one| {
        one.get("type").and_then(Node::as_str) == Some("PodScheduled")
            && one.get("status").and_then(Node::as_str) == Some("False")
    });
    if let Some(scheduled) = scheduled {
        return Some(reason_and_message(scheduled));
    }
    let lists = ["initContainerStatuses", "containerStatuses"].into_iter();
    let mut containers = lists.flat_map(|list| {
        let listed = status.get(list).and_then(Node::as_list);
        listed.unwrap_or_default()
    });
    containers.find_map(trouble_of_container)
}

fn trouble_of_container(container: &Node) -> Option<String> {
    let name = container.get("name").and_then(Node::as_str)?;
    let state = container.get("state")?;
    if let Some(waiting) = state.get("waiting") {
        let reason = waiting.get("reason").and_then(Node::as_str)?;
        if STARTING.contains(&reason) {
            return None;
        }
        let last = container
            .get("lastState")
            .and_then(|last| last.get("terminated"));
        let exit = last.and_then(exit).map(|exit| format!("; it {exit}"));
        let why = reason_and_message(waiting);
        return Some(format!(
            "container {name}: {why}{}",
            exit.unwrap_or_default()
        ));
    }
    let exit = exit(state.get("terminated")?)?;
    Some(format!("container {name} {exit}"))
}

/// Describes how a container ended, if it failed.
fn exit(terminated: &Node) -> Option<String> {
    let code = terminated.get("exitCode").and_then(Node::as_i64)?;
    let reason = terminated.get("reason").and_then(Node::as_str);
    let reason = reason
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    (code != 0).then(|| format!("exited with code {code}{reason}"))
}

fn reason_and_message(node: &Node) -> String {
    let text = |field: &str| {
        let text = node.get(field).and_then(Node::as_str);
        text.filter(|text| !text.is_empty())
    };
    match (text("reason"), text("message")) {
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => "no reason given".to_owned(),
    }
}

/// Returns since when the status of a custom resource says that it waits for children.
pub fn waiting_since(cr: &CrRecord) -> Option<Timestamp> {
    let conditions = cr.view.get("status")?.get("conditions")?;
    let mut conditions = conditions.as_list()?.iter().filter_map(Condition::read);
    let ready = conditions.find(|one| one.type_ == conditions::READY)?;
    let waits = ready.reason == Reason::ChildrenNotReady.as_str();
    ready.last_transition_time.filter(|_| waits)?.parse().ok()
}

/// Why an awaited child is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The child.
    pub child: ChildKey,
    /// How far it is, such as `0 of 1 replicas ready`, and what the objects behind it say.
    pub why: String,
}

impl Awaited {
    /// Describes a child that is not ready: `readiness` says how far it is, `cause` what is behind it.
    pub fn new(child: ChildKey, readiness: &str, cause: Option<&str>) -> Self {
        let cause = cause.map(|cause| format!("; {cause}")).unwrap_or_default();
        let why = format!("{readiness}{cause}");
        Self { child, why }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, status: &Value) -> Node {
        Node::from(&json!({ "metadata": { "name": name }, "status": status }))
    }

    #[test]
    fn a_pod_says_why_it_is_not_ready() {
        for (status, expected) in [
            (
                json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                    "message": "0/1 nodes are available" }] }),
                Some("Unschedulable: 0/1 nodes are available"),
            ),
            (
                json!({ "containerStatuses": [{ "name": "db", "state": { "waiting": {
                    "reason": "ImagePullBackOff", "message": "Back-off pulling image" } } }] }),
                Some("container db: ImagePullBackOff: Back-off pulling image"),
            ),
            (
                json!({ "containerStatuses": [{ "name": "db", "state": { "waiting": { "reason": "CrashLoopBackOff" } },
                    "lastState": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } } }] }),
                Some("container db: CrashLoopBackOff; it exited with code 137 (OOMKilled)"),
            ),
            (
                json!({ "initContainerStatuses": [{ "name": "init", "state": { "terminated": { "exitCode": 2 } } }] }),
                Some("container init exited with code 2"),
            ),
            (
                json!({ "containerStatuses": [{ "name": "db", "state": { "waiting": { "reason": "ContainerCreating" } } }] }),
                None,
            ),
            (json!({ "phase": "Pending" }), None),
        ] {
            let found = trouble(&pod("a", &status));
            assert_eq!(found.as_deref(), expected, "{status}");
        }
    }

    #[test]
    fn the_most_frequent_trouble_is_named_with_a_pod() {
        let waits = |reason: &str| json!({ "containerStatuses": [{ "name": "db", "state": { "waiting": { "reason": reason } } }] });
        let pods = [
            pod("c", &waits("ErrImagePull")),
            pod("b", &waits("ErrImagePull")),
            pod("a", &waits("CrashLoopBackOff")),
            pod("d", &json!({})),
        ];
        assert_eq!(
            trouble_of_pods(&pods).unwrap(),
            "Pod b and 1 more: container db: ErrImagePull"
        );
        assert_eq!(trouble_of_pods(&[]), None);
    }

    #[test]
    fn the_newest_warning_counts() {
        let event = |at: &str, message: &str| {
            Node::from(
                &json!({ "reason": "FailedCreate", "message": message, "lastTimestamp": at }),
            )
        };
        let events = [
            event("2026-01-01T00:00:02Z", "exceeded quota: few"),
            event("2026-01-01T00:00:01Z", "old"),
        ];
        assert_eq!(
            trouble_of_events(&events).unwrap(),
            "FailedCreate: exceeded quota: few"
        );
        assert_eq!(trouble_of_events(&[]), None);
    }

    #[test]
    fn a_selector_has_labels_only() {
        let of = |selector: Value| selector_text(&json!({ "spec": { "selector": selector } }));
        assert_eq!(
            of(json!({ "matchLabels": { "a": "1", "b": "2" } })).unwrap(),
            "a=1,b=2"
        );
        assert_eq!(
            of(json!({ "matchLabels": { "a": "1" }, "matchExpressions": [{}] })),
            None
        );
        assert_eq!(of(json!({})), None);
    }

    fn selector_text(workload: &Value) -> Option<String> {
        selector(&Node::from(workload))
    }
}
