//! What is kept of objects that belong to children: the pods of a workload, the endpoints of a Service.

use super::{
    record::{Identity, Malformed},
    render::workload_label,
};
use crate::{
    api::{EnrichTarget, names},
    plan::{ChildKey, GroupKind, ObjectKey},
    value::{Key, Map, Node},
};

/// What is kept of an object that belongs to a child.
#[derive(Clone, Debug, PartialEq)]
pub struct Related {
    /// Who it is.
    pub id: Identity,
    /// What it belongs to: equal to [`belonging`] of its child.
    pub of: Option<Box<str>>,
    /// What templates see of it.
    pub view: Vec<Node>,
}

/// Objects that belong to one child, for what `enrich` adds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelatedRead {
    /// What they are added as.
    pub target: EnrichTarget,
    /// What they belong to.
    pub of: Box<str>,
}

impl EnrichTarget {
    /// Group, version, kind and plural of the objects, and the label that all that matter have.
    pub fn objects(
        self,
    ) -> (
        &'static str,
        &'static str,
        &'static str,
        &'static str,
        &'static str,
    ) {
        match self {
            Self::Pods => ("", "v1", "Pod", "pods", names::LABEL_WORKLOAD),
            Self::ReplicaSets => (
                "apps",
                "v1",
                "ReplicaSet",
                "replicasets",
                names::LABEL_WORKLOAD,
            ),
            // The labels of a Service are copied to its slices.
            Self::Endpoints => (
                "discovery.k8s.io",
                "v1",
                "EndpointSlice",
                "endpointslices",
                names::LABEL_MANAGED,
            ),
        }
    }
}

/// What objects that are added as `target` belong to, if they belong to that child of a custom resource of kind and key
/// `owner`.
pub fn belonging(
    target: EnrichTarget,
    owner: (&GroupKind, &ObjectKey),
    child: &ChildKey,
    uid: &str,
) -> Box<str> {
    match target {
        EnrichTarget::Pods => {
            workload_label(owner.0, owner.1, &child.kind, &child.object.name).into()
        }
        EnrichTarget::ReplicaSets => uid.into(),
        EnrichTarget::Endpoints => child.object.to_string().into(),
    }
}

impl Related {
    /// Records `object`, which is of kind `kind`.
    ///
    /// # Errors
    /// [`Malformed`] as [`Identity::read`] says.
    pub fn read(kind: &GroupKind, object: &Node) -> Result<Self, Malformed> {
        let id = Identity::read(object)?;
        let (of, view) = match &*kind.kind {
            "Pod" => (
                label(object, names::LABEL_WORKLOAD).map(Box::from),
                vec![pod(object)],
            ),
            "ReplicaSet" => (controller(object).map(Box::from), vec![replica_set(object)]),
            "EndpointSlice" => (service(&id, object), endpoints(object)),
            _ => (None, Vec::new()),
        };
        Ok(Self { id, of, view })
    }

    /// Whether anything but the resourceVersion differs.
    pub fn differs(&self, before: &Self) -> bool {
        let Self { id, of, view } = self;
        id.uid != before.id.uid || *of != before.of || *view != before.view
    }
}

fn at<'a>(object: &'a Node, fields: &[&str]) -> Option<&'a Node> {
    fields
        .iter()
        .try_fold(object, |node, field| node.get(field))
}

fn text<'a>(object: &'a Node, fields: &[&str]) -> Option<&'a str> {
    at(object, fields)?.as_str()
}

fn items<'a>(object: &'a Node, fields: &[&str]) -> &'a [Node] {
    at(object, fields)
        .and_then(Node::as_list)
        .unwrap_or_default()
}

fn label<'a>(object: &'a Node, name: &str) -> Option<&'a str> {
    text(object, &["metadata", "labels", name])
}

fn controller(object: &Node) -> Option<&str> {
    let owners = items(object, &["metadata", "ownerReferences"]).iter();
    let mut controllers =
        owners.filter(|owner| owner.get("controller").and_then(Node::as_bool) == Some(true));
    text(controllers.next()?, &["uid"])
}

/// `namespace/name` of the Service that a slice belongs to.
fn service(id: &Identity, object: &Node) -> Option<Box<str>> {
    let service = ObjectKey {
        namespace: id.key.namespace.clone(),
        name: label(object, "kubernetes.io/service-name")?.into(),
    };
    Some(service.to_string().into())
}

fn or_empty(text: Option<&str>) -> Node {
    Node::from(text.unwrap_or_default())
}

fn map(fields: impl IntoIterator<Item = (&'static str, Node)>) -> Node {
    let fields = fields.into_iter().map(|(key, node)| (Key::from(key), node));
    Node::Map(fields.collect::<Map>())
}

/// A pod as the notes about pods read it.
fn pod(object: &Node) -> Node {
    let statuses = items(object, &["status", "containerStatuses"]);
    let restarts: i64 = statuses
        .iter()
        .filter_map(|one| one.get("restartCount")?.as_i64())
        .sum();
    let conditions = items(object, &["status", "conditions"]).iter();
    let mut ready = conditions.filter(|one| text(one, &["type"]) == Some("Ready"));
    let ready = ready.next().and_then(|one| text(one, &["status"])) == Some("True");
    map([
        ("name", or_empty(text(object, &["metadata", "name"]))),
        ("ip", or_empty(text(object, &["status", "podIP"]))),
        ("phase", or_empty(text(object, &["status", "phase"]))),
        ("ready", Node::Bool(ready)),
        ("node", or_empty(text(object, &["spec", "nodeName"]))),
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
        ("name", or_empty(text(status, &["name"]))),
        ("state", Node::from(word)),
        ("reason", or_empty(text(state, &["reason"]))),
    ];
    map(fields
        .into_iter()
        .chain(exit.map(|code| ("exitCode", code))))
}

/// Source: Kubernetes, annotation of the Deployment controller.
const REVISION: &str = "deployment.kubernetes.io/revision";

fn replica_set(object: &Node) -> Node {
    let number = |fields: &[&str]| at(object, fields).cloned().unwrap_or(Node::Int(0));
    let images = items(object, &["spec", "template", "spec", "containers"]).iter();
    let images: Vec<Node> = images.filter_map(|one| one.get("image").cloned()).collect();
    map([
        ("name", or_empty(text(object, &["metadata", "name"]))),
        (
            "revision",
            or_empty(text(object, &["metadata", "annotations", REVISION])),
        ),
        ("replicas", number(&["status", "replicas"])),
        ("readyReplicas", number(&["status", "readyReplicas"])),
        ("images", Node::from(images)),
    ])
}

/// One for each address and port.
fn endpoints(slice: &Node) -> Vec<Node> {
    let ports = items(slice, &["ports"]);
    let mut all = Vec::new();
    for endpoint in items(slice, &["endpoints"]) {
        // Unknown counts as ready. Source: Kubernetes API reference, EndpointConditions.
        let ready = at(endpoint, &["conditions", "ready"]).and_then(Node::as_bool) != Some(false);
        for address in items(endpoint, &["addresses"]) {
            let of_port = |port: Option<&Node>| {
                let port = port.and_then(|port| port.get("port")).cloned();
                let fields = [("ip", address.clone()), ("ready", Node::Bool(ready))];
                map(fields.into_iter().chain(port.map(|port| ("port", port))))
            };
            if ports.is_empty() {
                all.push(of_port(None));
            }
            all.extend(ports.iter().map(|port| of_port(Some(port))));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(kind: &str, object: &serde_json::Value) -> Related {
        let mut object = object.clone();
        object["metadata"]["uid"] = json!("u");
        object["metadata"]["resourceVersion"] = json!("1");
        object["metadata"]["namespace"] = json!("east");
        Related::read(&GroupKind::parse(kind), &Node::from(&object)).unwrap()
    }

    #[test]
    fn a_pod_tells_its_containers_and_its_workload() {
        let pod = read(
            "Pod",
            &json!({
                "metadata": { "name": "a", "labels": { "orkestra.orkspace.io/workload": "w" } },
                "spec": { "nodeName": "n1" },
                "status": {
                    "phase": "Running", "podIP": "10.0.0.4",
                    "conditions": [{ "type": "Ready", "status": "True" }],
                    "containerStatuses": [
                        { "name": "x", "restartCount": 2, "state": { "waiting": { "reason": "CrashLoopBackOff" } } },
                        { "name": "y", "restartCount": 1, "state": { "terminated": { "reason": "Error", "exitCode": 3 } } },
                    ],
                },
            }),
        );
        assert_eq!(pod.of.as_deref(), Some("w"));
        assert_eq!(
            pod.view[0].to_json(),
            json!({
                "name": "a", "ip": "10.0.0.4", "phase": "Running", "ready": true, "node": "n1", "restartCount": 3,
                "containers": [
                    { "name": "x", "state": "Waiting", "reason": "CrashLoopBackOff" },
                    { "name": "y", "state": "Terminated", "reason": "Error", "exitCode": 3 },
                ],
            })
        );
        assert_eq!(
            read("Pod", &json!({ "metadata": { "name": "b" } })).of,
            None
        );
    }

    #[test]
    fn a_slice_is_its_services_addresses_with_each_port() {
        let slice = read(
            "EndpointSlice.discovery.k8s.io",
            &json!({
                "metadata": { "name": "s-x", "labels": { "kubernetes.io/service-name": "s" } },
                "endpoints": [
                    { "addresses": ["10.0.0.4"], "conditions": { "ready": false } },
                    { "addresses": ["10.0.0.5"] },
                ],
                "ports": [{ "port": 80 }],
            }),
        );
        assert_eq!(slice.of.as_deref(), Some("east/s"));
        let view: Vec<_> = slice.view.iter().map(Node::to_json).collect();
        assert_eq!(
            view,
            [
                json!({ "ip": "10.0.0.4", "port": 80, "ready": false }),
                json!({ "ip": "10.0.0.5", "port": 80, "ready": true }),
            ]
        );
    }

    #[test]
    fn a_replica_set_belongs_to_the_deployment_that_controls_it() {
        let set = read(
            "ReplicaSet.apps",
            &json!({
                "metadata": {
                    "name": "a-7", "annotations": { "deployment.kubernetes.io/revision": "4" },
                    "ownerReferences": [{ "uid": "d", "controller": true }],
                },
                "spec": { "template": { "spec": { "containers": [{ "image": "web:3" }] } } },
                "status": { "replicas": 2 },
            }),
        );
        assert_eq!(set.of.as_deref(), Some("d"));
        assert_eq!(
            set.view[0].to_json(),
            json!({ "name": "a-7", "revision": "4", "replicas": 2, "readyReplicas": 0, "images": ["web:3"] })
        );
    }
}
