//! Custom resources and their children, read live.

use std::collections::BTreeMap;

use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};
use orkestra_core::{
    api::names,
    plan::{ChildPlan, GroupKind, OperatorPlan, ResourceType},
    reconcile::{kstatus, record::child_mark},
    value::Node,
};
use serde_json::{Map, Value, json};

use super::{
    ApiError, Pages,
    live::{Selection, age, api_resource, at, list as list_objects, parse_field},
};
use crate::meta::OperatorView;

/// Instances that a list shows.
const INSTANCES: usize = 500;
/// Children of one kind that an instance shows.
const CHILDREN: usize = 100;
/// Instances of one name that are told apart.
const NAMESAKES: usize = 20;

/// `…/cr`.
pub(super) async fn list(
    pages: &Pages,
    operator: &OperatorView,
    selection: Selection,
) -> Result<Value, ApiError> {
    let plan = &operator.plan;
    let field = selection.field.as_deref().map(parse_field).transpose()?;
    if field.is_some() && is_secret(&plan.resource) {
        return Err(ApiError::bad_request("fields of Secrets are not shown", ""));
    }
    let api = instances_api(pages, plan, selection.namespace.as_deref())?;
    let found = list_objects(&api, ListParams::default(), INSTANCES).await?;
    let items: Vec<Value> = found
        .items
        .iter()
        .map(|object| item(pages, object, field.as_deref()))
        .collect();
    Ok(json!({"crd": plan.name, "items": items, "truncated": found.truncated}))
}

/// `…/cr/{name}` and `…/cr/{namespace}/{name}`.
pub(super) async fn one(
    pages: &Pages,
    operator: &OperatorView,
    namespace: Option<&str>,
    name: &str,
) -> Result<Value, ApiError> {
    let plan = &operator.plan;
    let object = match (namespace, plan.resource.namespaced) {
        (Some(_), Some(false)) => {
            return Err(ApiError::not_found(
                format!("{} has no namespaces", plan.resource.kind),
                "leave the namespace out",
            ));
        }
        (Some(_), _) | (None, Some(false)) => {
            instances_api(pages, plan, namespace)?
                .get(check_name(name)?)
                .await?
        }
        (None, _) => by_name(pages, plan, name).await?,
    };
    let mut page = item(pages, &object, None);
    if !is_secret(&plan.resource) {
        page["status"] = object.data.get("status").cloned().unwrap_or(Value::Null);
    }
    let Children {
        rows,
        unavailable,
        truncated,
    } = children(pages, plan, &object).await;
    page["children"] = Value::Object(rows);
    page["unavailable"] = Value::Object(unavailable);
    page["truncated"] = Value::Bool(truncated);
    Ok(page)
}

/// The only instance of that name, in whichever namespace.
async fn by_name(
    pages: &Pages,
    plan: &OperatorPlan,
    name: &str,
) -> Result<DynamicObject, ApiError> {
    let selector = format!("metadata.name={}", check_name(name)?);
    let params = ListParams::default().fields(&selector);
    let mut found = list_objects(&instances_api(pages, plan, None)?, params, NAMESAKES)
        .await?
        .items;
    if found.len() > 1 {
        let candidates = found
            .iter()
            .map(|object| {
                let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
                format!(
                    "/katalog/{}/{}/{}/cr/{namespace}/{name}",
                    plan.katalog.namespace, plan.katalog.name, plan.name
                )
            })
            .collect();
        return Err(ApiError::ambiguous(
            format!("{} instances have the name {name}", found.len()),
            candidates,
        ));
    }
    found.pop().ok_or_else(|| {
        ApiError::not_found(format!("there is no {} {name}", plan.resource.kind), "")
    })
}

/// Names come from a path and go into one, and into a selector: only what Kubernetes allows passes.
fn check_name(name: &str) -> Result<&str, ApiError> {
    names::check_dns1123_subdomain(name)
        .map(|()| name)
        .map_err(|why| ApiError::bad_request(short(&why), ""))
}

fn instances_api(
    pages: &Pages,
    plan: &OperatorPlan,
    namespace: Option<&str>,
) -> Result<Api<DynamicObject>, ApiError> {
    let Some(resource) = api_resource(&plan.resource) else {
        return Err(ApiError::not_found(
            format!("{} is not known to the cluster yet", plan.resource.kind),
            "",
        ));
    };
    Ok(match namespace {
        Some(namespace) => {
            Api::namespaced_with(pages.client.clone(), check_name(namespace)?, &resource)
        }
        None => Api::all_with(pages.client.clone(), &resource),
    })
}

fn is_secret(kind: &ResourceType) -> bool {
    kind.group.is_empty() && &*kind.kind == "Secret"
}

fn item(pages: &Pages, object: &DynamicObject, field: Option<&[&str]>) -> Value {
    let meta = &object.metadata;
    let status = object.data.get("status").unwrap_or(&Value::Null);
    let mut item = json!({
        "name": meta.name,
        "namespace": meta.namespace,
        "phase": status.get("phase").filter(|phase| phase.is_string()),
        "ready": ready_condition(status),
        "age": meta.creation_timestamp.as_ref().map(|created| age(created.0, pages.clock.now())),
        "generation": meta.generation,
        "deleting": meta.deletion_timestamp.is_some(),
    });
    if let Some(field) = field {
        // metadata is not part of `data`; what is asked for is usually in spec or status.
        let value = match field {
            ["metadata", rest @ ..] => {
                at(&serde_json::to_value(meta).unwrap_or_default(), rest).clone()
            }
            path => at(&object.data, path).clone(),
        };
        item["value"] = value;
    }
    item
}

/// The `Ready` condition; none where there is none, or it is unknown.
fn ready_condition(status: &Value) -> Option<bool> {
    let conditions = status.get("conditions")?.as_array()?;
    let ready = conditions
        .iter()
        .find(|condition| condition["type"] == "Ready")?;
    match ready["status"].as_str()? {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

/// The children of an instance.
#[derive(Default)]
struct Children {
    /// By kind.
    rows: Map<String, Value>,
    /// Why a kind could not be read, by kind.
    unavailable: Map<String, Value>,
    /// Some are left out.
    truncated: bool,
}

/// Reads the children of every kind that the plan declares. A kind that is not served has none.
async fn children(pages: &Pages, plan: &OperatorPlan, owner: &DynamicObject) -> Children {
    let mut children = Children::default();
    let Some(uid) = owner.metadata.uid.as_deref() else {
        return children;
    };
    let mut kinds: BTreeMap<GroupKind, (&ResourceType, bool)> = BTreeMap::new();
    for child in &plan.children {
        let near = stays_near(child, plan);
        kinds
            .entry(child.kind.group_kind())
            .or_insert((&child.kind, true))
            .1 &= near;
    }
    let params = ListParams::default().labels(&format!("{}={uid}", names::LABEL_OWNER_UID));
    for (group_kind, (kind, near)) in kinds {
        let namespace = owner.metadata.namespace.as_deref().filter(|_| near);
        let taken = children.rows.contains_key(&*group_kind.kind);
        let key = if taken {
            group_kind.to_string()
        } else {
            group_kind.kind.to_string()
        };
        match children_of(pages, kind, namespace, &params).await {
            Ok((rows, truncated)) => {
                children.truncated |= truncated;
                children.rows.insert(key, Value::Array(rows));
            }
            Err(error) if error.is_not_found() => {
                children.rows.insert(key, Value::Array(Vec::new()));
            }
            Err(error) => {
                children.unavailable.insert(key, json!(error.to_string()));
            }
        }
    }
    children
}

/// The children of one kind, and whether some are left out. Of Secrets only metadata is fetched.
async fn children_of(
    pages: &Pages,
    kind: &ResourceType,
    namespace: Option<&str>,
    params: &ListParams,
) -> Result<(Vec<Value>, bool), ApiError> {
    let (resource, namespaced) = served(pages, kind).await?;
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) if namespaced => {
            Api::namespaced_with(pages.client.clone(), namespace, &resource)
        }
        _ => Api::all_with(pages.client.clone(), &resource),
    };
    if is_secret(kind) {
        return secrets(&api, params).await;
    }
    let group_kind = kind.group_kind();
    let found = list_objects(&api, params.clone(), CHILDREN).await?;
    let rows = found
        .items
        .iter()
        .filter(|object| is_child(&group_kind, object))
        .map(|object| row(&group_kind, object));
    Ok((rows.collect(), found.truncated))
}

/// Whether a child is in its custom resource's namespace.
fn stays_near(child: &ChildPlan, plan: &OperatorPlan) -> bool {
    child.namespace.is_none() && plan.resource.namespaced == Some(true)
}

/// How the kind is served; asks the cluster where the plan does not know.
async fn served(pages: &Pages, kind: &ResourceType) -> Result<(ApiResource, bool), ApiError> {
    if let (Some(resource), Some(namespaced)) = (api_resource(kind), kind.namespaced) {
        return Ok((resource, namespaced));
    }
    let gvk = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
    let (resource, capabilities) = kube::discovery::pinned_kind(&pages.client, &gvk).await?;
    Ok((
        resource,
        capabilities.scope == kube::discovery::Scope::Namespaced,
    ))
}

/// Secrets by their metadata: their values never reach this process.
async fn secrets(
    api: &Api<DynamicObject>,
    params: &ListParams,
) -> Result<(Vec<Value>, bool), ApiError> {
    let most = u32::try_from(CHILDREN).unwrap_or(u32::MAX);
    let found = api.list_metadata(&params.clone().limit(most)).await?;
    let truncated = found
        .metadata
        .continue_
        .is_some_and(|token| !token.is_empty());
    let rows = found
        .items
        .iter()
        .map(|secret| json!({"name": secret.metadata.name, "namespace": secret.metadata.namespace, "ready": true}));
    Ok((rows.collect(), truncated))
}

/// Labels get copied, to `EndpointSlices` for one; a child's own mark names itself.
fn is_child(kind: &GroupKind, object: &DynamicObject) -> bool {
    let mark = object
        .metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(names::ANNOTATION_CHILD));
    let name = object.metadata.name.as_deref().unwrap_or_default();
    mark.is_some_and(|mark| *mark == child_mark(kind, name))
}

fn row(kind: &GroupKind, object: &DynamicObject) -> Value {
    // An object that cannot be written as JSON cannot have come as JSON.
    let whole = Node::from(&serde_json::to_value(object).unwrap_or_default());
    let (ready, message) = match kstatus::readiness(kind, &whole) {
        kstatus::Readiness::Current => (true, None),
        kstatus::Readiness::InProgress(why) | kstatus::Readiness::Failed(why) => (false, Some(why)),
    };
    let mut row = json!({
        "name": object.metadata.name,
        "namespace": object.metadata.namespace,
        "ready": ready,
        "message": message.as_deref(),
    });
    if let Some(wanted) = object
        .data
        .pointer("/spec/replicas")
        .filter(|replicas| replicas.is_number())
    {
        row["replicas"] = wanted.clone();
        row["readyReplicas"] = object
            .data
            .pointer("/status/readyReplicas")
            .cloned()
            .unwrap_or(json!(0));
    }
    row
}

/// The start of a text that a request brought, for a message.
pub(super) fn short(text: &str) -> String {
    let mut start: String = text.chars().take(120).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    start
}
