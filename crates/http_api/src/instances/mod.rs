//! Custom resources, read live.

mod children;

use std::{collections::BTreeMap, sync::Arc};

use orkestra_language::api::names;
use orkestra_plan::{OperatorPlan, ResourceType};
use serde_json::Value;

use self::children::add_children;
use super::{
    ApiError, Pages,
    answers::{Instance, Instances, Item},
    error::{cut, short},
    live::{ListParams, ObjectsPath, Select, Selection, age, at, parse_field},
    project::WantedParts,
};
use orkestra_controller::OperatorView;

/// The most instances on a page of a list.
const INSTANCES: usize = 500;
/// The most instances of one name that are listed as candidates.
const NAMESAKES: usize = 20;
/// The longest short text, such as a name or a phase, in bytes.
pub(crate) const TEXT: usize = 512;
/// The largest value of `?field=`, in bytes as counted while it is read.
pub(crate) const VALUE: usize = 4 << 10;
/// The largest status of an instance: etcd accepts 1.5 MiB in one request.
const STATUS: usize = 4 << 20;
/// The most conditions that are read.
const CONDITIONS: usize = 256;

/// Returns the plan in force of the operator.
fn plan_of(operator: &OperatorView) -> Arc<OperatorPlan> {
    let status = operator.status.borrow();
    Arc::clone(operator.plan(&status))
}

/// `…/cr`.
pub(crate) async fn list(
    pages: &Pages,
    operator: &OperatorView,
    selection: Selection,
) -> Result<Instances, ApiError> {
    let plan = &plan_of(operator);
    let field = selection.field.as_deref().map(parse_field).transpose()?;
    if field.is_some() && is_secret(&plan.resource) {
        return Err(ApiError::bad_request("fields of Secrets are not shown", ""));
    }
    let limit = selection.limit.unwrap_or(INSTANCES);
    if !(1..=INSTANCES).contains(&limit) {
        let message = format!("`limit` must be from 1 to {INSTANCES}");
        return Err(ApiError::bad_request(message, ""));
    }
    let value = field.as_deref().map(|path| WantedParts::at(path, VALUE));
    let labels = plan.watched.label_selector();
    let ask = ListParams {
        // Of a built-in kind most objects are nothing of the operator's.
        select: match labels.as_deref().filter(|_| plan.watched.built_in) {
            Some(labels) => Select::Labels(labels),
            None => Select::All,
        },
        most: limit,
        metadata_only: is_secret(&plan.resource),
        want: &shown(None),
        value: value.as_ref(),
    };
    let place = instances_at(plan, selection.namespace.as_deref())?;
    let found = pages.reader.list(&place, ask, selection.next).await?;
    let values = found.values.into_iter().map(Some);
    let values = values.chain(std::iter::repeat(None));
    let items = found.items.iter().zip(values).map(|(object, judged)| {
        let mut item = item(pages, object);
        if let (Some(field), Some(judged)) = (&field, judged) {
            item.value = Some(at(&judged[0], field).clone());
            item.value_truncated = (judged[1] == true).then_some(true);
        }
        item
    });
    Ok(Instances {
        crd: plan.name.clone(),
        items: items.collect(),
        truncated: found.truncated,
        next: found.next,
    })
}

/// `…/cr/{name}` and `…/cr/{namespace}/{name}`.
pub(crate) async fn instance(
    pages: &Pages,
    operator: &OperatorView,
    namespace: Option<&str>,
    name: &str,
) -> Result<Instance, ApiError> {
    let plan = &plan_of(operator);
    let name = check_name(name)?;
    let want = shown((!is_secret(&plan.resource)).then_some(STATUS));
    let object = match (namespace, plan.resource.namespaced) {
        (Some(_), Some(false)) => {
            return Err(ApiError::not_found(
                format!("{} is not namespaced", plan.resource.kind),
                "omit the namespace",
            ));
        }
        (Some(_), _) | (None, Some(false)) => {
            let place = instances_at(plan, namespace)?;
            let metadata_only = is_secret(&plan.resource);
            pages
                .reader
                .get(&place, name, (&want, metadata_only))
                .await?
        }
        (None, _) => by_name(pages, plan, name, &want).await?,
    };
    let item = item(pages, &object);
    let mut instance = Instance {
        item,
        status: object["status"].clone(),
        children: BTreeMap::new(),
        unavailable: BTreeMap::new(),
        truncated: false,
    };
    add_children(pages, plan, &object, &mut instance).await;
    Ok(instance)
}

/// Returns the only instance of that name, in any namespace.
async fn by_name(
    pages: &Pages,
    plan: &OperatorPlan,
    name: &str,
    want: &WantedParts,
) -> Result<Value, ApiError> {
    let ask = ListParams {
        select: Select::Fields(&format!("metadata.name={name}")),
        most: NAMESAKES,
        metadata_only: is_secret(&plan.resource),
        want,
        value: None,
    };
    let place = instances_at(plan, None)?;
    let mut found = pages.reader.list(&place, ask, None).await?.items;
    if found.len() > 1 {
        let candidates = found
            .iter()
            .map(|object| {
                let namespace = text(object, "/metadata/namespace").unwrap_or_default();
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
        ApiError::not_found(format!("{} {name} does not exist", plan.resource.kind), "")
    })
}

/// Checks a name from a path, which is used in another path and in a selector: only names that Kubernetes permits are accepted.
fn check_name(name: &str) -> Result<&str, ApiError> {
    names::check_dns1123_subdomain(name)
        .map(|()| name)
        .map_err(|why| ApiError::bad_request(short(&why), ""))
}

fn instances_at(plan: &OperatorPlan, namespace: Option<&str>) -> Result<ObjectsPath, ApiError> {
    let namespace = namespace.map(check_name).transpose()?;
    ObjectsPath::of(&plan.resource, namespace).ok_or_else(|| {
        let message = format!("the cluster does not serve {} yet", plan.resource.kind);
        ApiError::not_found(message, "")
    })
}

pub(crate) fn is_secret(kind: &ResourceType) -> bool {
    kind.group.is_empty() && &*kind.kind == "Secret"
}

/// The fields that are read of a custom resource; its complete status, up to `status` bytes, if that is shown.
fn shown(status: Option<usize>) -> WantedParts {
    let metadata = [
        "name",
        "namespace",
        "uid",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
    ];
    let status = status.map_or_else(
        || {
            WantedParts::fields([
                ("phase", WantedParts::All(TEXT)),
                ("conditions", conditions()),
            ])
        },
        WantedParts::All,
    );
    WantedParts::fields([
        (
            "metadata",
            WantedParts::fields(metadata.map(|field| (field, WantedParts::All(TEXT)))),
        ),
        ("status", status),
    ])
}

/// The types, statuses and messages of conditions.
pub(crate) fn conditions() -> WantedParts {
    let parts = ["type", "status", "message"].map(|field| (field, WantedParts::All(TEXT)));
    WantedParts::Each(Box::new(WantedParts::fields(parts)), CONDITIONS)
}

pub(crate) fn text<'v>(object: &'v Value, pointer: &str) -> Option<&'v str> {
    object.pointer(pointer)?.as_str()
}

pub(crate) fn owned(object: &Value, pointer: &str) -> Option<String> {
    text(object, pointer).map(ToOwned::to_owned)
}

fn item(pages: &Pages, object: &Value) -> Item {
    let created = text(object, "/metadata/creationTimestamp").and_then(|time| time.parse().ok());
    Item {
        name: owned(object, "/metadata/name"),
        namespace: owned(object, "/metadata/namespace"),
        phase: text(object, "/status/phase").map(|phase| cut(phase, TEXT)),
        ready: ready_condition(&object["status"]),
        age: created.map(|created| age(created, pages.clock.now())),
        generation: object
            .pointer("/metadata/generation")
            .and_then(Value::as_i64),
        deleting: text(object, "/metadata/deletionTimestamp").is_some(),
        value: None,
        value_truncated: None,
    }
}

/// Returns the `Ready` condition; `None` if it is missing or unknown.
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
