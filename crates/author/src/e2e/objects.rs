//! Applies, finds and deletes the objects of a test.

use std::{path::Path, time::Duration};

use orkestra_cluster::requests::Cluster;
use orkestra_engine::reconcile::inventory::Inventory;
use orkestra_language::api::{names, simulate::ExpectedResource};
use orkestra_object::value::Node;
use orkestra_plan::{self, GroupKind};
use serde_json::Value;
use tokio::time::Instant;

use orkestra_controller::{self, AppliedObject, FileError, RequestError, ServedResource};
use orkestra_loader::files;

/// The field manager of applied objects.
const MANAGER: &str = "orkestra/e2e";
/// The polling interval for deletions.
const PERIOD: Duration = Duration::from_millis(200);

/// The reason why objects cannot be applied or found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TestObjectError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Call(#[from] RequestError),
    #[error("{0} exists already; delete it, or give the one of the test another name")]
    Exists(AppliedObject),
    #[error("several definitions have the kind `{0}`; write `{0}.GROUP`")]
    Ambiguous(String),
}

/// Applies the manifests of a file and adds them to `applied`. With `is_own`, fails if an object exists, because it would be
/// deleted with the test.
pub(crate) async fn apply_file(
    cluster: &Cluster,
    file: &Path,
    is_own: bool,
    applied: &mut Vec<AppliedObject>,
) -> Result<(), TestObjectError> {
    for manifest in read(file).await? {
        if is_own {
            refuse_existing(cluster, &manifest).await?;
        }
        let object = orkestra_controller::apply_manifest(cluster, &manifest, MANAGER).await?;
        applied.push(object);
    }
    Ok(())
}

/// Reads the manifests of a file.
async fn read(file: &Path) -> Result<Vec<Value>, TestObjectError> {
    let text = files::read_text(file).await;
    let text = text.map_err(|source| FileError::Read {
        path: file.display().to_string(),
        source,
    })?;
    Ok(orkestra_controller::manifests(file, &text)?)
}

/// Fails if an object of a file exists.
pub(crate) async fn refuse_file(cluster: &Cluster, file: &Path) -> Result<(), TestObjectError> {
    for manifest in read(file).await? {
        refuse_existing(cluster, &manifest).await?;
    }
    Ok(())
}

/// A custom resource as the owner of children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    uid: String,
    kinds: Vec<GroupKind>,
}

/// Returns the current state of a custom resource as the owner of children; `None` if it does not exist.
pub(crate) async fn owner(
    cluster: &Cluster,
    object: &AppliedObject,
) -> Result<Option<Owner>, RequestError> {
    let Some(live) = live(cluster, object).await? else {
        return Ok(None);
    };
    let text = |path: &[&str]| {
        let found = live.at(&orkestra_object::value::Path::of_fields(
            path.iter().copied(),
        ))?;
        found.as_str().map(str::to_owned)
    };
    let inventory = text(&["metadata", "annotations", names::ANNOTATION_INVENTORY]);
    let inventory = Inventory::parse(&inventory.unwrap_or_default());
    Ok(text(&["metadata", "uid"]).map(|uid| Owner {
        uid,
        kinds: inventory.kinds.iter().cloned().collect(),
    }))
}

/// Deletes the children of deleted owners and waits until they are gone; returns those that remain at `deadline`.
///
/// Kubernetes' garbage collector does the same, but up to a minute after a CRD was created, and never once the CRD is
/// deleted.
pub(crate) async fn delete_children(
    cluster: &Cluster,
    owners: &[Owner],
    deadline: Instant,
) -> Result<Vec<String>, RequestError> {
    loop {
        let mut left = Vec::new();
        for owner in owners {
            let labels = format!("{}={}", names::LABEL_OWNER_UID, owner.uid);
            for kind in &owner.kinds {
                let Some(resource) = ServedResource::discover(cluster, kind).await? else {
                    continue;
                };
                for child in resource.list(None, Some(&labels)).await? {
                    let name = child.metadata.name.unwrap_or_default();
                    let namespace = child.metadata.namespace;
                    if child.metadata.deletion_timestamp.is_none() {
                        resource.delete_in(namespace.as_deref(), &name).await?;
                    }
                    left.push(format!("{kind} {name}"));
                }
            }
        }
        if left.is_empty() || Instant::now() >= deadline {
            return Ok(left);
        }
        tokio::time::sleep(PERIOD).await;
    }
}

async fn refuse_existing(cluster: &Cluster, manifest: &Value) -> Result<(), TestObjectError> {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
    let named = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    let (Some(api_version), Some(kind), Some(name)) = named else {
        return Ok(());
    };
    let object = AppliedObject {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: text("/metadata/namespace").map(str::to_owned),
        name: name.to_owned(),
        is_new: false,
    };
    if live(cluster, &object).await?.is_some() {
        return Err(TestObjectError::Exists(object));
    }
    Ok(())
}

/// Returns the API resource for the kind of an object.
async fn resource(
    cluster: &Cluster,
    object: &AppliedObject,
) -> Result<Option<ServedResource>, RequestError> {
    let version = object.api_version.as_str();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    ServedResource::pinned(cluster, group, version, &object.kind).await
}

/// Returns the current state of an object in the cluster.
pub(crate) async fn live(
    cluster: &Cluster,
    object: &AppliedObject,
) -> Result<Option<Node>, RequestError> {
    let Some(resource) = resource(cluster, object).await? else {
        return Ok(None);
    };
    let namespace = object
        .namespace
        .as_deref()
        .unwrap_or(cluster.default_namespace());
    let namespace = resource.is_namespaced().then_some(namespace);
    let found = resource.get(namespace, &object.name).await?;
    Ok(found.map(|object| to_node(&object)))
}

/// Requests the deletion of an object. An object that does not exist counts as deleted.
pub(crate) async fn delete(cluster: &Cluster, object: &AppliedObject) -> Result<(), RequestError> {
    let Some(resource) = resource(cluster, object).await? else {
        return Ok(());
    };
    let namespace = object
        .namespace
        .as_deref()
        .filter(|_| resource.is_namespaced());
    resource.delete_in(namespace, &object.name).await
}

/// Waits until objects are gone; returns those that remain at `deadline`.
pub(crate) async fn until_gone(
    cluster: &Cluster,
    objects: &[AppliedObject],
    deadline: Instant,
) -> Result<Vec<AppliedObject>, RequestError> {
    loop {
        let mut left = Vec::new();
        for object in objects {
            if live(cluster, object).await?.is_some() {
                left.push(object.clone());
            }
        }
        if left.is_empty() || Instant::now() >= deadline {
            return Ok(left);
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Finds the objects with the expected kind and name; none if the cluster does not serve the kind.
pub(crate) async fn find(
    cluster: &Cluster,
    expected: &ExpectedResource,
) -> Result<Vec<Node>, TestObjectError> {
    let Some(resource) = of_kind(cluster, &expected.kind).await? else {
        return Ok(Vec::new());
    };
    let namespace = expected.namespace.as_deref();
    let namespace = namespace.unwrap_or(cluster.default_namespace());
    let namespace = resource.is_namespaced().then_some(namespace);
    let found = match &expected.name {
        Some(name) => resource.get(namespace, name).await?.into_iter().collect(),
        None => resource.list(namespace, None).await?,
    };
    let mut found: Vec<Node> = found.iter().map(to_node).collect();
    // Items of a list lack `apiVersion` and `kind`.
    let version = resource.served.api_version();
    for object in &mut found {
        if let Node::Map(fields) = object {
            fields.insert("apiVersion".into(), Node::from(version.as_str()));
            fields.insert("kind".into(), Node::from(&*resource.served.kind));
        }
    }
    Ok(found)
}

/// Returns the API resource of a kind in the form `Deployment`, `deployments` or `Certificate.cert-manager.io`.
async fn of_kind(cluster: &Cluster, kind: &str) -> Result<Option<ServedResource>, TestObjectError> {
    if let Some(known) = orkestra_plan::named(kind) {
        let found =
            ServedResource::pinned(cluster, &known.group, &known.version, &known.kind).await?;
        return Ok(found);
    }
    if let Some((kind, group)) = kind.split_once('.') {
        let kind = GroupKind {
            group: group.into(),
            kind: kind.into(),
        };
        return Ok(ServedResource::discover(cluster, &kind).await?);
    }
    let group = "apiextensions.k8s.io";
    let definitions =
        ServedResource::pinned(cluster, group, "v1", "CustomResourceDefinition").await?;
    let definitions = match definitions {
        Some(definitions) => definitions.list(None, None).await?,
        None => Vec::new(),
    };
    let text = |object: &Value, pointer: &str| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let mut found = definitions.iter().filter_map(|object| {
        let names = ["kind", "plural", "singular"];
        let names = names.map(|name| text(&object.data, &format!("/spec/names/{name}")));
        let is_it = names.iter().any(|name| name.eq_ignore_ascii_case(kind));
        is_it.then(|| GroupKind {
            group: text(&object.data, "/spec/group").into(),
            kind: names[0].as_str().into(),
        })
    });
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(ServedResource::discover(cluster, &only).await?),
        (Some(_), Some(_)) => Err(TestObjectError::Ambiguous(kind.to_owned())),
        (None, _) => Ok(None),
    }
}

fn to_node(object: &kube::api::DynamicObject) -> Node {
    // An object that was parsed from JSON always serializes.
    Node::from(&serde_json::to_value(object).unwrap_or_default())
}
