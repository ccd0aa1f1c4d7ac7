//! The manifests of a file, applied one by one; objects that an entry waits for.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use orkestra_cluster::requests::Cluster;
use orkestra_engine::reconcile::kstatus::{Readiness, readiness};
use orkestra_language::{api::SetupWait, diagnostics::Diagnostics, document::parse_stream};
use orkestra_object::value::Node;
use orkestra_plan::{self, GroupKind};
use serde_json::Value;
use tokio::time::Instant;

use super::{super::calls::ServedResource, FileError};
use orkestra_loader::files;

/// The field manager of objects that a user's own files declare.
pub(crate) const MANAGER: &str = "orkestra/run";
/// How long to wait until the kind of a CRD is served.
const PATIENCE: Duration = Duration::from_secs(30);
/// The interval between checks.
const PERIOD: Duration = Duration::from_millis(100);

/// A file to apply.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    /// Its path; of a file of an artifact, its name in messages.
    pub(crate) path: PathBuf,
    /// The content, if it is a file of an artifact.
    pub(crate) text: Option<Arc<str>>,
}

impl Manifest {
    /// Reads the content.
    pub(crate) async fn read(&self) -> Result<String, FileError> {
        match &self.text {
            Some(text) => Ok(text.to_string()),
            None => read_text(&self.path).await,
        }
    }
}

/// Reads one text file.
pub(crate) async fn read_text(path: &Path) -> Result<String, FileError> {
    files::read_text(path)
        .await
        .map_err(|source| FileError::Read {
            path: path.display().to_string(),
            source,
        })
}

/// An object that a manifest declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedObject {
    /// API group and version, such as `apps/v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; none of a cluster-scoped kind.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// Whether it did not exist before.
    pub is_new: bool,
}

/// `Website shop/one`.
impl fmt::Display for AppliedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// The manifests of a file, in order; the items of a `List` one by one.
pub fn manifests(file: &Path, text: &str) -> Result<Vec<Value>, FileError> {
    let stream = parse_stream(&file.display().to_string(), text);
    if stream.problems.has_errors() {
        return Err(FileError::Invalid(stream.problems));
    }
    let documents = stream.sources.iter().map(|source| source.tree.to_json());
    let documents =
        documents.flat_map(
            |document| match document.get("items").and_then(Value::as_array) {
                Some(items) if document.get("kind").and_then(Value::as_str) == Some("List") => {
                    items.clone()
                }
                _ => vec![document],
            },
        );
    Ok(documents.collect())
}

/// Applies one manifest as the field manager `manager`; the result names it. A definition is served when this returns.
pub async fn apply_manifest(
    cluster: &Cluster,
    manifest: &Value,
    manager: &str,
) -> Result<AppliedObject, FileError> {
    apply_in(cluster, manifest, manager, None).await
}

/// Does the same; an object without a namespace gets `namespace`, by default that of the client's context.
pub(crate) async fn apply_in(
    cluster: &Cluster,
    manifest: &Value,
    manager: &str,
    namespace: Option<&str>,
) -> Result<AppliedObject, FileError> {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
    let (Some(api_version), Some(kind), Some(name)) =
        (text("/apiVersion"), text("/kind"), text("/metadata/name"))
    else {
        return Err(FileError::Invalid(nameless(manifest)));
    };
    let resource = wait_served(cluster, api_version, kind).await?;
    let default = || namespace.unwrap_or_else(|| cluster.default_namespace());
    let namespace = resource
        .is_namespaced()
        .then(|| text("/metadata/namespace").unwrap_or_else(default));
    let is_new = resource.get(namespace, name).await?.is_none();
    resource.apply(namespace, name, manifest, manager).await?;
    if kind == "CustomResourceDefinition" {
        wait_established(cluster, &resource, name, manifest).await?;
    }
    Ok(AppliedObject {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        is_new,
    })
}

fn nameless(manifest: &Value) -> Diagnostics {
    use orkestra_language::diagnostics::{Code, Diagnostic, FieldPath};
    let kind = manifest
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or("document");
    Diagnostic::error(
        Code::Missing,
        FieldPath::root(),
        format!("a {kind} without apiVersion, kind or metadata.name cannot be applied"),
    )
    .into()
}

/// Waits for the objects that `setup` names, one after the other.
pub async fn wait_for(cluster: &Cluster, objects: &[SetupWait]) -> Result<(), FileError> {
    for object in objects {
        let SetupWait {
            api_version,
            kind,
            name,
            namespace,
            ready,
            timeout,
        } = object;
        let patience = timeout.map_or(PATIENCE, |timeout| timeout.0);
        let built_in = || Some(orkestra_plan::named(kind)?.api_version());
        let api_version = api_version.clone().or_else(built_in).unwrap_or_default();
        let kind = orkestra_plan::named(kind)
            .filter(|known| known.api_version() == api_version)
            .map_or_else(|| kind.clone(), |known| known.kind.to_string());
        let waiting = wait_one(
            cluster,
            (&api_version, &kind),
            (namespace.as_deref(), name),
            *ready,
        );
        if let Ok(done) = tokio::time::timeout(patience, waiting).await {
            done?;
        } else {
            let what = if *ready == Some(true) {
                "ready"
            } else {
                "there"
            };
            return Err(FileError::NotReady(
                format!("{kind} {name}"),
                what,
                patience,
            ));
        }
    }
    Ok(())
}

/// Waits until the object exists, and is ready if required.
async fn wait_one(
    cluster: &Cluster,
    (api_version, kind): (&str, &str),
    (namespace, name): (Option<&str>, &str),
    ready: Option<bool>,
) -> Result<(), FileError> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let group_kind = GroupKind {
        group: group.into(),
        kind: kind.into(),
    };
    loop {
        if let Some(resource) = ServedResource::pinned(cluster, group, version, kind).await? {
            let namespace = resource
                .is_namespaced()
                .then(|| namespace.unwrap_or_else(|| cluster.default_namespace()));
            if let Some(object) = resource.get(namespace, name).await? {
                let is_current = || {
                    let object = serde_json::to_value(&object).unwrap_or_default();
                    readiness(&group_kind, &Node::from(&object)) == Readiness::Current
                };
                if ready != Some(true) || is_current() {
                    return Ok(());
                }
            }
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Resolves where a kind is served, and waits for it: its CRD may just have been applied.
async fn wait_served(
    cluster: &Cluster,
    api_version: &str,
    kind: &str,
) -> Result<ServedResource, FileError> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(served) = ServedResource::pinned(cluster, group, version, kind).await? {
            return Ok(served);
        }
        if Instant::now() >= deadline {
            return Err(FileError::NotServed(
                format!("{api_version} {kind}"),
                PATIENCE,
            ));
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Waits until a CRD is established, its names are accepted and its versions are served.
async fn wait_established(
    cluster: &Cluster,
    resource: &ServedResource,
    name: &str,
    manifest: &Value,
) -> Result<(), FileError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let live = resource.get(None, name).await?;
        if live
            .is_some_and(|crd| holds(&crd.data, "Established") && holds(&crd.data, "NamesAccepted"))
        {
            break;
        }
        if Instant::now() >= deadline {
            return Err(FileError::NotServed(name.to_owned(), PATIENCE));
        }
        tokio::time::sleep(PERIOD).await;
    }
    let text = |pointer: &str| {
        manifest
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let versions = manifest
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    for version in
        versions.filter(|version| version.get("served").and_then(Value::as_bool) == Some(true))
    {
        let version = version
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        wait_served(
            cluster,
            &format!("{}/{version}", text("/spec/group")),
            text("/spec/names/kind"),
        )
        .await?;
    }
    Ok(())
}

fn holds(crd: &Value, condition: &str) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    let is = |one: &Value, field: &str, wanted: &str| {
        one.get(field).and_then(Value::as_str) == Some(wanted)
    };
    conditions
        .into_iter()
        .flatten()
        .any(|one| is(one, "type", condition) && is(one, "status", "True"))
}
