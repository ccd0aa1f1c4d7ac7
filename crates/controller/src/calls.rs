//! Individual requests of the meta-controller: few and small, so they use plain JSON values.
//!
//! One file: a list of requests, each a few lines.

use kube::api::{DynamicObject, ObjectMeta};
use orkestra_cluster::requests::{
    Cluster, ClusterError, Deletion, Form, Listed, PageOf, Propagation, Scope, Served,
};
use orkestra_language::api::{OperatedKind, names};
use orkestra_object::value::{Fault, Node, Projection};
use orkestra_plan::{Declaring, GroupKind, ObjectKey, ObjectNamespaces, definitions::CrdShape};
use serde_json::Value;

/// Objects per page, as in kubectl.
const PAGE: u32 = 500;
/// The field manager of the meta-controller's own writes.
const MANAGER: &str = names::MANAGER;

/// A failed request.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {source}")]
pub struct RequestError {
    /// Verb, resource and object: `patch websites.demo.example.org shop/one`.
    pub what: String,
    /// The cause.
    pub source: Box<ClusterError>,
}

impl RequestError {
    fn new(what: String, source: ClusterError) -> Self {
        Self {
            what,
            source: Box::new(source),
        }
    }

    /// True if the object or its kind does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(
            *self.source,
            ClusterError::NotFound(_) | ClusterError::NotServed(_)
        )
    }

    /// True if another client changed the object first.
    pub fn is_conflict(&self) -> bool {
        matches!(*self.source, ClusterError::Conflict { .. })
    }

    /// True if an object of that name already exists.
    pub fn is_already_there(&self) -> bool {
        matches!(*self.source, ClusterError::AlreadyExists(_))
    }

    /// True if a permission is missing.
    pub fn is_forbidden(&self) -> bool {
        matches!(*self.source, ClusterError::Forbidden { .. })
    }

    /// True if the API server refuses the object.
    pub fn is_invalid(&self) -> bool {
        matches!(*self.source, ClusterError::Invalid { .. })
    }

    /// True if the API server did not answer.
    pub fn is_unreachable(&self) -> bool {
        matches!(*self.source, ClusterError::Unavailable(_))
    }
}

/// A resource as it is served.
#[derive(Clone, Debug)]
pub struct ServedResource {
    cluster: Cluster,
    /// The kind, as it is served.
    pub served: Served,
}

impl ServedResource {
    fn new(cluster: &Cluster, group: &str, version: &str, kind: &str, plural: &str) -> Self {
        let served = Served::namespaced(group, version, kind, plural);
        Self {
            cluster: cluster.clone(),
            served,
        }
    }

    /// Returns a resource that reads partly unreadable objects without their unreadable parts, which are listed under
    /// [`Fault::MARK`].
    #[must_use]
    pub(crate) fn in_part(mut self) -> Self {
        self.cluster = self.cluster.in_part();
        self
    }

    /// Katalogs, or Komposers.
    pub(crate) fn declaring(cluster: &Cluster, kind: Declaring) -> Self {
        let (group, version) = (names::GROUP, names::VERSION);
        Self::new(cluster, group, version, kind.kind(), kind.plural()).in_part()
    }

    /// Secrets.
    pub(crate) fn secrets(cluster: &Cluster) -> Self {
        Self::new(cluster, "", "v1", "Secret", "secrets")
    }

    /// Controller revisions.
    pub(crate) fn revisions(cluster: &Cluster) -> Self {
        Self::new(
            cluster,
            "apps",
            "v1",
            "ControllerRevision",
            "controllerrevisions",
        )
    }

    /// Definitions of custom resources.
    pub(crate) fn definitions(cluster: &Cluster) -> Self {
        Self {
            cluster: cluster.clone(),
            served: Served::crds(),
        }
    }

    /// The objects of a definition, in one of its versions.
    pub(crate) fn defined(cluster: &Cluster, shape: &CrdShape, version: &str) -> Self {
        let CrdShape {
            group,
            kind,
            plural,
            ..
        } = shape;
        Self::new(cluster, group, version, kind, plural)
    }

    /// Leases.
    pub(crate) fn leases(cluster: &Cluster) -> Self {
        Self::new(cluster, "coordination.k8s.io", "v1", "Lease", "leases")
    }

    /// Namespaces.
    pub(crate) fn namespaces(cluster: &Cluster) -> Self {
        Self::new(cluster, "", "v1", "Namespace", "namespaces")
    }

    /// An operated kind, of any scope.
    pub(crate) fn operated(cluster: &Cluster, kind: &OperatedKind) -> Self {
        Self::new(
            cluster,
            &kind.group,
            &kind.version,
            &kind.kind,
            &kind.plural,
        )
        .in_part()
    }

    /// Resolves where this version of a kind is served; none if it is not.
    pub async fn pinned(
        cluster: &Cluster,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Option<Self>, RequestError> {
        let cluster = cluster.clone();
        let found = cluster.discover(group, version, kind).await;
        let found = found.map_err(|source| {
            RequestError::new(format!("discover {kind} of {group}/{version}"), source)
        })?;
        Ok(found.map(|served| Self { cluster, served }))
    }

    /// Resolves where a kind is served, in any version; none if it is not.
    pub async fn discover(
        cluster: &Cluster,
        kind: &GroupKind,
    ) -> Result<Option<Self>, RequestError> {
        let versions = cluster.clone().versions(&kind.group).await;
        for version in
            versions.map_err(|source| RequestError::new(format!("discover {kind}"), source))?
        {
            if let Some(found) = Self::pinned(cluster, &kind.group, &version, &kind.kind).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// True if its objects are namespaced.
    pub fn is_namespaced(&self) -> bool {
        self.served.namespaced
    }

    /// Returns the object, or none.
    pub async fn get(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<DynamicObject>, RequestError> {
        let key = key(namespace, name);
        match self.cluster.get(&self.served, &key).await {
            Err(ClusterError::NotFound(_)) => Ok(None),
            answer => self.object("get", &key, answer).map(Some),
        }
    }

    /// Returns the cluster-scoped object of that name, by a list, for which the permission exists; none if it does not exist.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<Node>, RequestError> {
        let found = self.cluster.find(&self.served, name).await;
        found.map_err(|source| RequestError::new(self.what("find", name), source))
    }

    /// Lists the objects that `labels` select, in one namespace or in all.
    pub async fn list(
        &self,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<DynamicObject>, RequestError> {
        let mut all = self.list_each(namespace, labels).await?;
        // A partly unreadable object cannot be used.
        all.retain(|object| object.data.get(Fault::MARK).is_none());
        Ok(all)
    }

    /// Lists the metadata of the objects that `labels` select in `places`, as far as `fields` keeps it; returns that of the
    /// objects that `is_kept` accepts. Objects are decoded one by one: only what is returned stays in memory.
    pub(crate) async fn list_metadata(
        &self,
        places: &ObjectNamespaces,
        labels: Option<&str>,
        fields: &Projection,
        is_kept: MetadataFilter<'_>,
    ) -> Result<Vec<ObjectMeta>, RequestError> {
        // A cluster-scoped resource is listed once.
        let is_whole = !self.served.namespaced;
        let places = if is_whole {
            &ObjectNamespaces::All
        } else {
            places
        };
        let mut all = Vec::new();
        let mut take = |listed| {
            if let Listed::Object(object) = listed {
                all.extend(metadata(&object).filter(is_kept));
            }
        };
        for namespace in places.scopes() {
            let how = (Form::Metadata, fields);
            self.pass_each(how, namespace, labels, &mut take).await?;
        }
        Ok(all)
    }

    /// Lists all objects, and passes each to `take` as it arrives: none of them stays in memory.
    pub(crate) async fn each(
        &self,
        mut take: impl FnMut(&Node) + Send,
    ) -> Result<(), RequestError> {
        let whole = Projection::whole();
        let mut take = |listed| {
            if let Listed::Object(object) = listed {
                take(&object);
            }
        };
        self.pass_each((Form::Whole, &whole), None, None, &mut take)
            .await
    }

    /// Passes what a projection keeps of each object in a namespace, or in all, to `take` as it arrives, page by page.
    async fn pass_each(
        &self,
        how: (Form, &Projection),
        namespace: Option<&str>,
        labels: Option<&str>,
        take: &mut (dyn FnMut(Listed) + Send),
    ) -> Result<(), RequestError> {
        let scope = scope(namespace, labels);
        let mut next: Option<String> = None;
        loop {
            let page = PageOf {
                limit: PAGE,
                next: next.as_deref(),
            };
            let answer = self
                .cluster
                .list_each(how, &self.served, &scope, page, take)
                .await;
            next = answer.map_err(|source| self.unlisted(namespace, source))?;
            if next.is_none() {
                return Ok(());
            }
        }
    }

    async fn list_each(
        &self,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<DynamicObject>, RequestError> {
        let scope = scope(namespace, labels);
        let items = self.cluster.list_all(&self.served, &scope).await;
        let items = items.map_err(|source| self.unlisted(namespace, source))?;
        // An item that does not decode as an object comes from a proxy, and is not ours.
        let items = items.iter();
        Ok(items
            .filter_map(|item| serde_json::from_value(item.to_json()).ok())
            .collect())
    }

    fn unlisted(&self, namespace: Option<&str>, source: ClusterError) -> RequestError {
        RequestError::new(self.what("list", namespace.unwrap_or_default()), source)
    }

    /// Sends a merge patch.
    pub(crate) async fn merge(
        &self,
        namespace: Option<&str>,
        name: &str,
        patch: &Value,
    ) -> Result<DynamicObject, RequestError> {
        let key = key(namespace, name);
        let answer = self
            .cluster
            .merge_patch(&self.served, &key, None, MANAGER, &Node::from(patch))
            .await;
        self.object("patch", &key, answer)
    }

    /// Sends a merge patch to the status subresource.
    pub(crate) async fn merge_status(
        &self,
        namespace: Option<&str>,
        name: &str,
        patch: &Value,
    ) -> Result<DynamicObject, RequestError> {
        let key = key(namespace, name);
        let answer = self
            .cluster
            .merge_patch(
                &self.served,
                &key,
                Some("status"),
                MANAGER,
                &Node::from(patch),
            )
            .await;
        self.object("patch the status of", &key, answer)
    }

    /// Applies with force as `manager`: a user's own file declares the object.
    pub(crate) async fn apply(
        &self,
        namespace: Option<&str>,
        name: &str,
        object: &Value,
        manager: &str,
    ) -> Result<DynamicObject, RequestError> {
        let key = key(namespace, name);
        let answer = self
            .cluster
            .apply(&self.served, &key, manager, true, &Node::from(object))
            .await;
        self.object("apply", &key, answer)
    }

    /// Creates the object.
    pub(crate) async fn create(
        &self,
        namespace: &str,
        name: &str,
        object: &Value,
    ) -> Result<DynamicObject, RequestError> {
        self.create_in(Some(namespace), name, object).await
    }

    /// Creates an object of a kind that may be cluster-scoped.
    pub(crate) async fn create_in(
        &self,
        namespace: Option<&str>,
        name: &str,
        object: &Value,
    ) -> Result<DynamicObject, RequestError> {
        let key = key(namespace, name);
        let answer = self
            .cluster
            .create(&self.served, &key, MANAGER, &Node::from(object))
            .await;
        self.object("create", &key, answer)
    }

    /// Deletes the object; succeeds if it does not exist.
    pub(crate) async fn delete(&self, namespace: &str, name: &str) -> Result<(), RequestError> {
        self.delete_in(Some(namespace), name).await
    }

    /// Deletes an object of a kind that may be cluster-scoped.
    pub async fn delete_in(&self, namespace: Option<&str>, name: &str) -> Result<(), RequestError> {
        self.delete_if(namespace, name, (None, None)).await
    }

    /// Deletes the object of that uid; succeeds if it does not exist, or if another object has its name.
    pub(crate) async fn delete_uid(
        &self,
        namespace: Option<&str>,
        name: &str,
        uid: &str,
    ) -> Result<(), RequestError> {
        match self.delete_if(namespace, name, (Some(uid), None)).await {
            Err(error) if error.is_conflict() => Ok(()),
            answer => answer,
        }
    }

    /// Deletes the object if it has that uid and resourceVersion; succeeds if it does not exist.
    pub(crate) async fn delete_exactly(
        &self,
        namespace: &str,
        name: &str,
        (uid, version): (&str, &str),
    ) -> Result<(), RequestError> {
        self.delete_if(Some(namespace), name, (Some(uid), Some(version)))
            .await
    }

    async fn delete_if(
        &self,
        namespace: Option<&str>,
        name: &str,
        (uid, resource_version): (Option<&str>, Option<&str>),
    ) -> Result<(), RequestError> {
        let key = key(namespace, name);
        let how = Deletion {
            propagation: Propagation::Background,
            uid,
            resource_version,
        };
        match self.cluster.delete(&self.served, &key, &how).await {
            Ok(_) | Err(ClusterError::NotFound(_)) => Ok(()),
            Err(source) => Err(RequestError::new(
                self.what("delete", &key.to_string()),
                source,
            )),
        }
    }

    fn object(
        &self,
        verb: &str,
        key: &ObjectKey,
        answer: Result<Node, ClusterError>,
    ) -> Result<DynamicObject, RequestError> {
        let read = |node: Node| {
            serde_json::from_value(node.to_json())
                .map_err(|_| ClusterError::Unavailable("the response is not an object".to_owned()))
        };
        answer
            .and_then(read)
            .map_err(|source| RequestError::new(self.what(verb, &key.to_string()), source))
    }

    fn what(&self, verb: &str, object: &str) -> String {
        let dot = if self.served.group.is_empty() {
            ""
        } else {
            "."
        };
        format!(
            "{verb} {}{dot}{} {object}",
            self.served.plural, self.served.group
        )
        .trim_end()
        .to_owned()
    }
}

/// Accepts the metadata of an object that is listed.
pub(crate) type MetadataFilter<'a> = &'a (dyn Fn(&ObjectMeta) -> bool + Sync);

/// Returns the metadata of an object. An object that does not decode comes from a proxy, and is not ours.
fn metadata(object: &Node) -> Option<ObjectMeta> {
    serde_json::from_value(object.get("metadata")?.to_json()).ok()
}

fn scope(namespace: Option<&str>, labels: Option<&str>) -> Scope {
    Scope {
        namespace: namespace.map(str::to_owned),
        selector: labels.map(str::to_owned),
        fields: None,
    }
}

fn key(namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey {
        namespace: namespace.map(Into::into),
        name: name.into(),
    }
}
