//! Requests to the API server.

use std::{
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind, TypeMeta},
    discovery::{Scope, pinned_kind},
};
use orkestra_core::{
    plan::{ChildKey, OperatorPlan, ResourceType},
    value::Node,
};
use serde_json::Value;

/// The deadline of one request.
const PATIENCE: Duration = Duration::from_secs(30);
/// Objects per page.
const PAGE: u32 = 500;
/// The status of an apply that would take over fields of other managers.
const CONFLICT: u16 = 409;
/// The status for a missing object or namespace.
const NOT_FOUND: u16 = 404;

/// Why a comparison with the cluster failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A kind is not served.
    #[error("the cluster does not serve {0}: install its CustomResourceDefinition")]
    NotServed(String),
    /// A request was refused, or not answered.
    #[error("cannot {what}")]
    Request {
        /// The request: `list ponds`.
        what: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// A request was not answered in time.
    #[error("cannot {0}: no answer within {seconds} s", seconds = PATIENCE.as_secs())]
    Silent(String),
}

impl Error {
    /// True if the cluster was unreachable.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::NotServed(_) => false,
            Self::Silent(_) => true,
            Self::Request { source, .. } => !matches!(**source, kube::Error::Api(_)),
        }
    }
}

/// A kind as the cluster serves it.
#[derive(Debug, Clone)]
pub(super) struct Served {
    resource: ApiResource,
    namespaced: bool,
}

/// A cluster, with a cache of its kinds.
pub(super) struct LiveCluster {
    client: kube::Client,
    kinds: Mutex<Vec<Served>>,
}

impl LiveCluster {
    pub(super) fn new(client: kube::Client) -> Self {
        Self {
            client,
            kinds: Mutex::default(),
        }
    }

    /// Returns how a kind is served.
    pub(super) async fn kind(&self, kind: &ResourceType) -> Result<Served, Error> {
        self.served(&kind.group, &kind.version, &kind.kind).await
    }

    /// Returns how the kind of a rendered object is served.
    pub(super) async fn kind_of(
        &self,
        operator: &OperatorPlan,
        object: &Node,
    ) -> Result<Served, Error> {
        let text = |field| object.get(field).and_then(Node::as_str).unwrap_or_default();
        let version = text("apiVersion");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        // The version is the plan's: equal objects of two versions are one.
        let known = operator
            .kinds()
            .find(|kind| *kind.group == *group && *kind.kind == *text("kind"));
        let version = known.map_or(version, |kind| &*kind.version);
        self.served(group, version, text("kind")).await
    }

    async fn served(&self, group: &str, version: &str, kind: &str) -> Result<Served, Error> {
        if let Some(known) = self.known(group, version, kind) {
            return Ok(known);
        }
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let name = || format!("{kind} in {}", gvk.api_version());
        let asked = within(
            format!("discover {}", name()),
            pinned_kind(&self.client, &gvk),
        )
        .await;
        let (resource, capabilities) = match asked {
            Ok(found) => found,
            Err(Error::Request { source, .. }) if is_missing(&source) => {
                return Err(Error::NotServed(name()));
            }
            Err(error) => return Err(error),
        };
        let served = Served {
            resource,
            namespaced: capabilities.scope == Scope::Namespaced,
        };
        self.kinds().push(served.clone());
        Ok(served)
    }

    fn known(&self, group: &str, version: &str, kind: &str) -> Option<Served> {
        let is_it = |served: &&Served| {
            let resource = &served.resource;
            (&*resource.group, &*resource.version, &*resource.kind) == (group, version, kind)
        };
        self.kinds().iter().find(is_it).cloned()
    }

    fn kinds(&self) -> MutexGuard<'_, Vec<Served>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all objects of a kind with those labels.
    pub(super) async fn list(
        &self,
        kind: &Served,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<Node>, Error> {
        let api = self.api(kind, namespace);
        let mut params = ListParams::default().limit(PAGE).labels(labels);
        let mut objects = Vec::new();
        loop {
            let what = format!("list {}", kind.resource.plural);
            let page = within(what, api.list(&params)).await?;
            for mut object in page.items {
                // Items of a list have no apiVersion and kind.
                object.types.get_or_insert_with(|| TypeMeta {
                    api_version: kind.resource.api_version.clone(),
                    kind: kind.resource.kind.clone(),
                });
                objects.push(node(&object));
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(objects),
            }
        }
    }

    /// Returns the live object with the namespace and name of this one.
    pub(super) async fn same(&self, kind: &Served, object: &Node) -> Result<Option<Node>, Error> {
        self.get(kind, namespace_of(object), name_of(object)).await
    }

    /// Returns an object that a pass requests.
    pub(super) async fn object(
        &self,
        operator: &OperatorPlan,
        key: &ChildKey,
    ) -> Result<Option<Node>, Error> {
        let known = operator.kinds().find(|kind| kind.group_kind() == key.kind);
        let version = known.map_or("v1", |kind| &*kind.version);
        let kind = self
            .served(&key.kind.group, version, &key.kind.kind)
            .await?;
        self.get(&kind, key.object.namespace.as_deref(), &key.object.name)
            .await
    }

    async fn get(
        &self,
        kind: &Served,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Node>, Error> {
        let api = self.api(kind, namespace);
        let what = format!("get {} {name}", kind.resource.plural);
        let found = within(what, api.get_opt(name)).await?;
        Ok(found.map(|object| node(&object)))
    }

    /// Returns the object as it would be after an apply by the operator, and the API server's message on fields that other
    /// managers own.
    pub(super) async fn dry_run(
        &self,
        kind: &Served,
        manager: &str,
        object: &Node,
    ) -> Result<(Value, Option<String>), Error> {
        let (api, name) = (self.api(kind, namespace_of(object)), name_of(object));
        let wanted = object.to_json();
        let params = PatchParams {
            dry_run: true,
            ..PatchParams::apply(manager)
        };
        let what = || format!("apply {} {name} as a dry run", kind.resource.plural);
        let apply = async |params: &PatchParams| {
            within(what(), api.patch(name, params, &Patch::Apply(&wanted))).await
        };
        let applied = apply(&params).await;
        match applied {
            Ok(after) => Ok((node(&after).to_json(), None)),
            Err(Error::Request { source, .. }) if code(&source) == Some(CONFLICT) => {
                let after = apply(&params.force()).await?;
                Ok((node(&after).to_json(), Some(source.to_string())))
            }
            // Its namespace is not created yet.
            Err(Error::Request { source, .. }) if code(&source) == Some(NOT_FOUND) => {
                Ok((wanted.clone(), None))
            }
            Err(error) => Err(error),
        }
    }

    /// Sets the namespace of an object from a file that has none, like kubectl.
    pub(super) fn place(&self, kind: &Served, object: &mut Node) {
        if !kind.namespaced || namespace_of(object).is_some() {
            return;
        }
        let mut json = object.to_json();
        if let Some(Value::Object(metadata)) = json.get_mut("metadata") {
            metadata.insert(
                "namespace".to_owned(),
                self.client.default_namespace().into(),
            );
            *object = Node::from(&json);
        }
    }

    fn api(&self, kind: &Served, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace.filter(|_| kind.namespaced) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind.resource),
            None => Api::all_with(self.client.clone(), &kind.resource),
        }
    }
}

async fn within<T>(what: String, asked: impl Future<Output = kube::Result<T>>) -> Result<T, Error> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(Error::Request {
            what,
            source: Box::new(source),
        }),
        Err(_) => Err(Error::Silent(what)),
    }
}

/// True if discovery found no such kind.
fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Discovery(_)) || code(error) == Some(NOT_FOUND)
}

fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

fn node(object: &DynamicObject) -> Node {
    serde_json::to_value(object).map_or(Node::Null, |value| Node::from(&value))
}

fn name_of(object: &Node) -> &str {
    let metadata = object.get("metadata");
    let name = metadata.and_then(|metadata| metadata.get("name")?.as_str());
    name.unwrap_or_default()
}

fn namespace_of(object: &Node) -> Option<&str> {
    object.get("metadata")?.get("namespace")?.as_str()
}
