//! The children of a custom resource, read live.

use std::collections::BTreeMap;

use orkestra_engine::reconcile::{kstatus, record::child_mark};
use orkestra_language::api::names;
use orkestra_object::value::Node;
use orkestra_plan::{ChildPlan, GroupKind, OperatorPlan, ResourceType};
use serde_json::Value;

use super::{TEXT, VALUE, conditions, is_secret, owned, text};
use crate::{
    ApiError, Pages,
    answers::{Child, Instance},
    error::cut,
    live::{ListParams, ObjectsPath, Select},
    project::WantedParts,
};

/// The most children of one kind that are shown for an instance.
const CHILDREN: usize = 100;

/// Reads the children of every kind that the plan declares. A kind that is not served has no children.
pub(crate) async fn add_children(
    pages: &Pages,
    plan: &OperatorPlan,
    owner: &Value,
    instance: &mut Instance,
) {
    let Some(uid) = text(owner, "/metadata/uid") else {
        return;
    };
    let mut kinds: BTreeMap<GroupKind, (&ResourceType, bool)> = BTreeMap::new();
    for child in &plan.children {
        let near = stays_near(child, plan);
        kinds
            .entry(child.kind.group_kind())
            .or_insert((&child.kind, true))
            .1 &= near;
    }
    let labels = format!("{}={uid}", names::LABEL_OWNER_UID);
    for (group_kind, (kind, near)) in kinds {
        let namespace = text(owner, "/metadata/namespace").filter(|_| near);
        let taken = instance.children.contains_key(&*group_kind.kind);
        let key = if taken {
            group_kind.to_string()
        } else {
            group_kind.kind.to_string()
        };
        match children_of(pages, kind, namespace, &labels).await {
            Ok((rows, truncated)) => {
                instance.truncated |= truncated;
                instance.children.insert(key, rows);
            }
            Err(error) if error.is_not_found() => {
                instance.children.insert(key, Vec::new());
            }
            Err(error) => {
                instance.unavailable.insert(key, error.to_string());
            }
        }
    }
}

/// Returns the children of one kind, and whether some are omitted. Of Secrets only metadata is requested.
async fn children_of(
    pages: &Pages,
    kind: &ResourceType,
    namespace: Option<&str>,
    labels: &str,
) -> Result<(Vec<Child>, bool), ApiError> {
    let place = served(pages, kind, namespace).await?;
    let group_kind = kind.group_kind();
    let ask = ListParams {
        select: Select::Labels(labels),
        most: CHILDREN,
        metadata_only: is_secret(kind),
        want: &of_child(),
        value: None,
    };
    let found = pages.reader.list(&place, ask, None).await?;
    let rows = found
        .items
        .iter()
        .filter(|object| is_secret(kind) || is_child(&group_kind, object))
        .map(|object| row(kind, &group_kind, object));
    Ok((rows.collect(), found.truncated))
}

/// The fields that are read of a child: its annotation, and the fields for readiness.
fn of_child() -> WantedParts {
    let metadata = ["name", "namespace", "generation", "deletionTimestamp"];
    let metadata = metadata.map(|field| (field, WantedParts::All(TEXT)));
    let mark = WantedParts::fields([(names::ANNOTATION_CHILD, WantedParts::All(TEXT))]);
    let spec = ["replicas", "type"].map(|field| (field, WantedParts::All(TEXT)));
    let counts = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "desiredNumberScheduled",
        "updatedNumberScheduled",
        "numberAvailable",
        "phase",
    ];
    let status = counts
        .map(|field| (field, WantedParts::All(TEXT)))
        .into_iter();
    let status = status.chain([
        ("conditions", conditions()),
        ("loadBalancer", WantedParts::at(&["ingress"], VALUE)),
    ]);
    WantedParts::fields([
        (
            "metadata",
            WantedParts::fields(metadata.into_iter().chain([("annotations", mark)])),
        ),
        ("spec", WantedParts::fields(spec)),
        ("status", WantedParts::fields(status)),
    ])
}

/// True if a child is in the namespace of its custom resource.
fn stays_near(child: &ChildPlan, plan: &OperatorPlan) -> bool {
    child.namespace.is_none() && plan.resource.namespaced == Some(true)
}

/// Returns the path of a kind; uses discovery if the plan does not know it.
async fn served(
    pages: &Pages,
    kind: &ResourceType,
    namespace: Option<&str>,
) -> Result<ObjectsPath, ApiError> {
    let near = |namespaced: bool| namespace.filter(|_| namespaced);
    if let Some(namespaced) = kind.namespaced
        && let Some(place) = ObjectsPath::of(kind, near(namespaced))
    {
        return Ok(place);
    }
    let found = pages.reader.discover(kind).await?;
    let version = (&*kind.group, &*kind.version);
    Ok(ObjectsPath::at(
        version,
        &found.plural,
        near(found.namespaced),
    ))
}

/// Labels are copied to other objects, such as `EndpointSlices`; the annotation of a child contains its own name.
fn is_child(kind: &GroupKind, object: &Value) -> bool {
    let annotations = &object["metadata"]["annotations"];
    let name = text(object, "/metadata/name").unwrap_or_default();
    annotations[names::ANNOTATION_CHILD] == child_mark(kind, name)
}

fn row(kind: &ResourceType, group_kind: &GroupKind, object: &Value) -> Child {
    let (ready, message) = if is_secret(kind) {
        (true, None)
    } else {
        match kstatus::readiness(group_kind, &Node::from(object)) {
            kstatus::Readiness::Current => (true, None),
            kstatus::Readiness::InProgress(why) | kstatus::Readiness::Failed(why) => {
                (false, Some(why))
            }
            kstatus::Readiness::Unreadable(fault) => (false, Some(fault.to_string().into())),
        }
    };
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let replicas = number("/spec/replicas");
    Child {
        name: owned(object, "/metadata/name"),
        namespace: owned(object, "/metadata/namespace"),
        ready,
        message: message.map(|message| cut(&message, TEXT)),
        replicas,
        ready_replicas: replicas.map(|_| number("/status/readyReplicas").unwrap_or(0)),
    }
}
