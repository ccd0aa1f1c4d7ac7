//! The Pods of a Deployment, and why it is not available.
//!
//! The cause is where Kubernetes reports it: a Pod that was not created in a condition of the Deployment, one that is not scheduled
//! in a condition of the Pod, and an image or a program that fails in the state of a container.

use orkestra_cluster::requests::{Cluster, Scope};
use orkestra_object::value::{Map, Node};
use orkestra_plan::GroupKind;

use super::{
    Error,
    objects::{condition, text},
};

/// Returns why a Deployment is not available.
pub(crate) async fn look(cluster: &Cluster, deployment: Option<&Node>) -> Result<String, Error> {
    let Some(live) = deployment else {
        return Ok("it does not exist".to_owned());
    };
    let pods = match pods_of(live) {
        Some(scope) => list_pods(cluster, &scope).await?,
        None => Vec::new(),
    };
    Ok(why(live, &pods))
}

/// Returns the Pods in a scope.
pub(crate) async fn list_pods(cluster: &Cluster, scope: &Scope) -> Result<Vec<Node>, Error> {
    let kind = GroupKind {
        group: "".into(),
        kind: "Pod".into(),
    };
    let Some(served) = orkestra_operator::served::built_in(&kind, "v1") else {
        return Ok(Vec::new());
    };
    let page = cluster.list_page(&served, scope, 0, None).await;
    Ok(page.map_err(Error::request("list", "Pods"))?.items)
}

/// Returns where the Pods of a Deployment are; `None` if it selects none.
pub(crate) fn pods_of(deployment: &Node) -> Option<Scope> {
    let path = ["spec", "selector", "matchLabels"];
    let labels = path
        .iter()
        .try_fold(deployment, |node, field| node.get(field));
    let pairs = labels
        .and_then(Node::as_map)
        .into_iter()
        .flat_map(Map::iter);
    let pairs = pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let selector = pairs.collect::<Vec<_>>().join(",");
    (!selector.is_empty()).then(|| Scope {
        namespace: deployment.meta_text("namespace").map(str::to_owned),
        selector: Some(selector),
        ..Scope::default()
    })
}

/// Returns the reason in one sentence.
fn why(deployment: &Node, pods: &[Node]) -> String {
    // No Pod could be created, as with a quota.
    if condition(deployment, "ReplicaFailure") == Some("True")
        && let Some(message) = message(deployment, "ReplicaFailure")
    {
        return message;
    }
    let mut reasons: Vec<String> = Vec::new();
    for pod in pods {
        let Some(reason) = of_pod(pod) else { continue };
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    let name = |pod: &Node| pod.meta_text("name").unwrap_or_default().to_owned();
    match (reasons.len(), pods) {
        (0, []) => "it has no Pods yet".to_owned(),
        (0, pods) => {
            let waiting = pods
                .iter()
                .find(|pod| condition(pod, "Ready") != Some("True"));
            match waiting {
                Some(pod) => format!(
                    "Pod {} is not ready; `kubectl logs` shows its log",
                    name(pod)
                ),
                None => "its Pods are ready, and the Deployment has not noticed".to_owned(),
            }
        }
        _ => {
            let pod = pods
                .iter()
                .find(|pod| of_pod(pod).as_ref() == reasons.first());
            format!(
                "Pod {}: {}",
                pod.map(name).unwrap_or_default(),
                reasons.join("; ")
            )
        }
    }
}

/// Returns why a Pod does not run; none if it does.
fn of_pod(pod: &Node) -> Option<String> {
    if condition(pod, "PodScheduled") == Some("False") {
        let message = message(pod, "PodScheduled");
        return Some(format!("not scheduled: {}", message.unwrap_or_default()));
    }
    let lists = ["initContainerStatuses", "containerStatuses"];
    let statuses = lists
        .iter()
        .filter_map(|list| pod.get("status")?.get(list)?.as_list());
    statuses.flatten().find_map(of_container)
}

/// Returns why a container does not run, such as `ErrImagePull: …` or `CrashLoopBackOff: … (it ended with exit code 1)`.
fn of_container(status: &Node) -> Option<String> {
    let waiting = status.get("state")?.get("waiting")?;
    let reason = text(waiting, &["reason"])?;
    if matches!(reason, "ContainerCreating" | "PodInitializing") {
        return None;
    }
    let mut why = match text(waiting, &["message"]) {
        Some(message) if !message.is_empty() => format!("{reason}: {message}"),
        _ => reason.to_owned(),
    };
    let ended = status
        .get("lastState")
        .and_then(|last| last.get("terminated"));
    if let Some(ended) = ended {
        let code = ended
            .get("exitCode")
            .and_then(Node::as_i64)
            .unwrap_or_default();
        let reason = text(ended, &["reason"]).unwrap_or("Error");
        why = format!("{why} (it ended before: {reason}, exit code {code})");
    }
    Some(why)
}

/// Returns the message of a condition, if it has one.
fn message(object: &Node, type_: &str) -> Option<String> {
    let conditions = object.get("status")?.get("conditions")?.as_list()?;
    let condition = conditions
        .iter()
        .find(|one| text(one, &["type"]) == Some(type_))?;
    let message = text(condition, &["message"]).filter(|message| !message.is_empty());
    message
        .or_else(|| text(condition, &["reason"]))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: &Value) -> Node {
        Node::from(&json!({ "metadata": { "name": "orkestra-1" }, "status": status }))
    }

    #[test]
    fn the_reason_is_that_of_the_pod_or_of_the_deployment_that_cannot_create_one() {
        let none = Node::from(&json!({}));
        let failed = Node::from(&json!({ "status": { "conditions": [
            { "type": "Available", "status": "False", "message": "no" },
            { "type": "ReplicaFailure", "status": "True", "message": "pods \"x\" is forbidden: exceeded quota: small" },
        ] } }));
        assert!(why(&failed, &[]).contains("exceeded quota: small"));
        assert_eq!(why(&none, &[]), "it has no Pods yet");
        for (status, part) in [
            (
                json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available" }] }),
                "Pod orkestra-1: not scheduled: 0/3 nodes are available",
            ),
            (
                json!({ "containerStatuses": [{ "state": { "waiting": { "reason": "ErrImagePull", "message": "not found" } } }] }),
                "Pod orkestra-1: ErrImagePull: not found",
            ),
            (
                json!({ "containerStatuses": [{
                    "state": { "waiting": { "reason": "CrashLoopBackOff" } },
                    "lastState": { "terminated": { "reason": "OOMKilled", "exitCode": 137 } },
                }] }),
                "CrashLoopBackOff (it ended before: OOMKilled, exit code 137)",
            ),
            (
                json!({ "initContainerStatuses": [{ "state": { "waiting": { "reason": "CreateContainerConfigError", "message": "no secret" } } }] }),
                "CreateContainerConfigError: no secret",
            ),
            (
                json!({ "containerStatuses": [{ "state": { "running": {} } }] }),
                "Pod orkestra-1 is not ready",
            ),
        ] {
            let why = why(&none, &[pod(&status)]);
            assert!(why.contains(part), "{why}");
        }
    }
}
