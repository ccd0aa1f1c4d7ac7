//! The views of objects that additions are computed from: only the parts that templates can see.

use orkestra_object::value::{Key, Map, Node};

pub(crate) fn at<'a>(object: &'a Node, fields: &[&str]) -> Option<&'a Node> {
    fields
        .iter()
        .try_fold(object, |node, field| node.get(field))
}

pub(crate) fn text<'a>(object: &'a Node, fields: &[&str]) -> Option<&'a str> {
    at(object, fields)?.as_str()
}

pub(crate) fn items<'a>(object: &'a Node, fields: &[&str]) -> &'a [Node] {
    at(object, fields)
        .and_then(Node::as_list)
        .unwrap_or_default()
}

/// Returns the owner reference of the controller.
pub(crate) fn controller_reference(object: &Node) -> Option<&Node> {
    let mut owners = items(object, &["metadata", "ownerReferences"]).iter();
    owners.find(|owner| owner.get("controller").and_then(Node::as_bool) == Some(true))
}

pub(crate) fn controller(object: &Node) -> Option<&str> {
    text(controller_reference(object)?, &["uid"])
}

pub(crate) fn map(fields: impl IntoIterator<Item = (&'static str, Node)>) -> Node {
    let fields = fields.into_iter().map(|(key, node)| (Key::from(key), node));
    Node::Map(fields.collect::<Map>())
}

/// Returns the text there, or an empty one.
pub(crate) fn text_at(object: &Node, fields: &[&str]) -> Node {
    Node::from(text(object, fields).unwrap_or_default())
}

fn number_at(object: &Node, fields: &[&str]) -> Node {
    at(object, fields).cloned().unwrap_or(Node::Int(0))
}

fn name(object: &Node) -> (&'static str, Node) {
    ("name", text_at(object, &["metadata", "name"]))
}

/// True if the condition of that type is true.
fn is_true(object: &Node, wanted: &str) -> bool {
    let mut conditions = items(object, &["status", "conditions"]).iter();
    let found = conditions.find(|one| text(one, &["type"]) == Some(wanted));
    found.and_then(|one| text(one, &["status"])) == Some("True")
}

/// A Pod in the form that the notes about Pods read.
pub(crate) fn pod(object: &Node) -> Node {
    let statuses = items(object, &["status", "containerStatuses"]);
    let restarts: i64 = statuses
        .iter()
        .filter_map(|one| one.get("restartCount")?.as_i64())
        .sum();
    map([
        name(object),
        ("ip", text_at(object, &["status", "podIP"])),
        ("phase", text_at(object, &["status", "phase"])),
        ("ready", Node::Bool(is_true(object, "Ready"))),
        ("node", text_at(object, &["spec", "nodeName"])),
        ("restartCount", Node::Int(restarts)),
        (
            "containers",
            Node::from(statuses.iter().map(container).collect::<Vec<_>>()),
        ),
    ])
}

/// A container: `state` is `Running`, `Waiting` or `Terminated`.
fn container(status: &Node) -> Node {
    const STATES: [(&str, &str); 3] = [
        ("running", "Running"),
        ("waiting", "Waiting"),
        ("terminated", "Terminated"),
    ];
    let found = STATES
        .iter()
        .find_map(|(key, word)| Some((*word, at(status, &["state", key])?)));
    let (word, state) = found.unwrap_or(("", &Node::Null));
    let exit = state.get("exitCode").cloned();
    let fields = [
        ("name", text_at(status, &["name"])),
        ("state", Node::from(word)),
        ("reason", text_at(state, &["reason"])),
    ];
    map(fields
        .into_iter()
        .chain(exit.map(|code| ("exitCode", code))))
}

/// Source: Kubernetes, annotation of the Deployment controller.
const REVISION: &str = "deployment.kubernetes.io/revision";

pub(crate) fn replica_set(object: &Node) -> Node {
    let images = items(object, &["spec", "template", "spec", "containers"]).iter();
    let images: Vec<Node> = images.filter_map(|one| one.get("image").cloned()).collect();
    map([
        name(object),
        (
            "revision",
            text_at(object, &["metadata", "annotations", REVISION]),
        ),
        ("replicas", number_at(object, &["status", "replicas"])),
        (
            "readyReplicas",
            number_at(object, &["status", "readyReplicas"]),
        ),
        ("images", Node::from(images)),
    ])
}

/// A slice of endpoints: its ports, and the addresses and the Pod of each endpoint.
pub(crate) fn slice(object: &Node) -> Node {
    let ports = items(object, &["ports"]).iter();
    let ports: Vec<Node> = ports
        .map(|port| port.get("port").cloned().unwrap_or_default())
        .collect();
    let endpoints = items(object, &["endpoints"]).iter();
    let endpoints: Vec<Node> = endpoints.map(endpoint).collect();
    map([
        ("ports", Node::from(ports)),
        ("endpoints", Node::from(endpoints)),
    ])
}

fn endpoint(endpoint: &Node) -> Node {
    // An unknown state counts as ready. Source: Kubernetes API reference, EndpointConditions.
    let ready = at(endpoint, &["conditions", "ready"]).and_then(Node::as_bool) != Some(false);
    let is_pod = text(endpoint, &["targetRef", "kind"]) == Some("Pod");
    let fields = [
        (
            "addresses",
            Node::from(items(endpoint, &["addresses"]).to_vec()),
        ),
        ("ready", Node::Bool(ready)),
    ];
    let pod = is_pod.then(|| {
        [
            ("pod", text_at(endpoint, &["targetRef", "name"])),
            ("node", text_at(endpoint, &["nodeName"])),
        ]
    });
    map(fields.into_iter().chain(pod.into_iter().flatten()))
}

/// An Event from either API. Events of the newer one count in `series` and have a single timestamp.
///
/// Source: Kubernetes API reference, `Event v1` and `Event v1 events.k8s.io`.
pub(crate) fn event(object: &Node) -> Node {
    let counts = [&["series", "count"][..], &["count"]];
    let count = counts
        .iter()
        .find_map(|way| at(object, way)?.as_i64().filter(|count| *count > 0));
    let moments = [
        &["series", "lastObservedTime"][..],
        &["lastTimestamp"],
        &["eventTime"],
        &["firstTimestamp"],
        &["metadata", "creationTimestamp"],
    ];
    let last = moments.iter().find_map(|way| text(object, way));
    map([
        ("reason", text_at(object, &["reason"])),
        ("message", text_at(object, &["message"])),
        ("count", Node::Int(count.unwrap_or(1))),
        ("lastTimestamp", Node::from(last.unwrap_or_default())),
    ])
}

pub(crate) fn claim(object: &Node) -> Node {
    map([
        name(object),
        ("namespace", text_at(object, &["metadata", "namespace"])),
        ("phase", text_at(object, &["status", "phase"])),
        (
            "capacity",
            text_at(object, &["status", "capacity", "storage"]),
        ),
        (
            "storageClass",
            text_at(object, &["spec", "storageClassName"]),
        ),
        ("volume", text_at(object, &["spec", "volumeName"])),
    ])
}

/// The provisioner of a volume. Source: Kubernetes, annotation of the `PersistentVolume` controller.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

pub(crate) fn volume(object: &Node) -> Node {
    let provisioner = text(object, &["metadata", "annotations", PROVISIONED_BY])
        .or_else(|| text(object, &["spec", "csi", "driver"]));
    map([
        name(object),
        ("phase", text_at(object, &["status", "phase"])),
        (
            "capacity",
            text_at(object, &["spec", "capacity", "storage"]),
        ),
        (
            "storageClass",
            text_at(object, &["spec", "storageClassName"]),
        ),
        (
            "reclaimPolicy",
            text_at(object, &["spec", "persistentVolumeReclaimPolicy"]),
        ),
        ("volumeMode", text_at(object, &["spec", "volumeMode"])),
        ("provisioner", Node::from(provisioner.unwrap_or_default())),
    ])
}

pub(crate) fn storage_class(object: &Node) -> Node {
    let grows = at(object, &["allowVolumeExpansion"]).and_then(Node::as_bool);
    map([
        name(object),
        ("provisioner", text_at(object, &["provisioner"])),
        ("reclaimPolicy", text_at(object, &["reclaimPolicy"])),
        ("volumeBindingMode", text_at(object, &["volumeBindingMode"])),
        (
            "allowVolumeExpansion",
            Node::Bool(grows.unwrap_or_default()),
        ),
    ])
}

/// Source: Kubernetes, "Well-Known Labels, Annotations and Taints".
pub(crate) fn node(object: &Node) -> Node {
    let label = |name| Node::from(object.label(name).unwrap_or_default());
    map([
        name(object),
        ("zone", label("topology.kubernetes.io/zone")),
        ("region", label("topology.kubernetes.io/region")),
        ("instanceType", label("node.kubernetes.io/instance-type")),
    ])
}

pub(crate) const ACTIVE: &str = "Active";
pub(crate) const COMPLETE: &str = "Complete";

pub(crate) fn job(object: &Node) -> Node {
    let ended = [COMPLETE, "Failed"]
        .into_iter()
        .find(|end| is_true(object, end));
    map([
        name(object),
        ("phase", Node::from(ended.unwrap_or(ACTIVE))),
        ("active", number_at(object, &["status", "active"])),
        ("succeeded", number_at(object, &["status", "succeeded"])),
        ("failed", number_at(object, &["status", "failed"])),
        (
            "createdAt",
            text_at(object, &["metadata", "creationTimestamp"]),
        ),
        ("startTime", text_at(object, &["status", "startTime"])),
        (
            "completionTime",
            text_at(object, &["status", "completionTime"]),
        ),
    ])
}
