//! The cluster as the commands of authors read it.
//!
//! ```text
//!  custom resources ── children, one list for each kind ──► Subject ── pass ──► asks for more objects? ── look_up ──┐
//!                                                              ▲                                                    │
//!                                                              └────────────────────────────────────────────────────┘
//! ```

mod subjects;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
};

use orkestra_cluster::requests::{Cluster, ClusterError, Scope, Served};
use orkestra_engine::reconcile::{differ::without, inventory::Inventory, record::is_child};
use orkestra_language::api::names;
use orkestra_object::value::{Fault, Node, Path};
use orkestra_plan::{
    ChildKey, ChildPlan, GroupKind, ObjectKey, OperatorPlan, REPLICAS, ResourceType, kinds,
};
use parking_lot::Mutex;
use serde_json::Value;

pub(crate) use self::subjects::Subject;

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
        source: ClusterError,
    },
}

impl Error {
    /// True if the cluster was unreachable.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::NotServed(_) => false,
            Self::Request { source, .. } => matches!(source, ClusterError::Unavailable(_)),
        }
    }
}

/// A cluster, with a cache of its kinds.
pub(crate) struct LiveCluster {
    cluster: Cluster,
    kinds: Mutex<Vec<Served>>,
}

impl LiveCluster {
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            kinds: Mutex::default(),
        }
    }

    /// Returns how a kind is served.
    pub(crate) async fn kind(&self, kind: &ResourceType) -> Result<Served, Error> {
        self.served(&kind.group_kind(), &kind.version).await
    }

    /// Returns how the kind of a rendered object is served.
    pub(crate) async fn kind_of(
        &self,
        operator: &OperatorPlan,
        object: &Node,
    ) -> Result<Served, Error> {
        let text = |field| object.get(field).and_then(Node::as_str).unwrap_or_default();
        let version = text("apiVersion");
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = GroupKind {
            group: group.into(),
            kind: text("kind").into(),
        };
        // The version is the plan's: equal objects of two versions are one.
        let known = operator.kinds().find(|known| known.group_kind() == kind);
        let version = known.map_or(version, |kind| &*kind.version);
        self.served(&kind, version).await
    }

    async fn served(&self, kind: &GroupKind, version: &str) -> Result<Served, Error> {
        let is_it = |served: &&Served| served.is(kind) && *served.version == *version;
        if let Some(known) = self.kinds.lock().iter().find(is_it).cloned() {
            return Ok(known);
        }
        let name = format!("{kind} in version {version}");
        let asked = self.cluster.discover(&kind.group, version, &kind.kind);
        let served = described(&format!("discover {name}"), asked).await?;
        let served = served.ok_or(Error::NotServed(name))?;
        self.kinds.lock().push(served.clone());
        Ok(served)
    }

    /// Returns all objects of a kind with those labels.
    pub(crate) async fn list(
        &self,
        kind: &Served,
        namespace: Option<&str>,
        labels: &str,
    ) -> Result<Vec<Node>, Error> {
        let scope = Scope {
            namespace: namespace.filter(|_| kind.namespaced).map(str::to_owned),
            selector: (!labels.is_empty()).then(|| labels.to_owned()),
            fields: None,
        };
        described(&format!("list {}", kind.plural), async {
            let objects = self.cluster.list_all(kind, &scope).await?.into_iter();
            objects.map(|object| whole(kind, object)).collect()
        })
        .await
    }

    /// Returns the custom resources that the operator reconciles and that are not being deleted.
    pub(crate) async fn resources(
        &self,
        operator: &OperatorPlan,
        namespace: Option<&str>,
    ) -> Result<Vec<Node>, Error> {
        let watched = &operator.watched;
        let served = self.kind(&operator.resource).await?;
        let labels: Vec<String> = (watched.labels.iter())
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let mut all = self.list(&served, namespace, &labels.join(",")).await?;
        all.retain(|cr| {
            let name = cr.meta_text("name").unwrap_or_default();
            watched.admits(cr.meta_text("namespace"), name)
                && !(watched.built_in && is_child(cr))
                && cr.meta("deletionTimestamp").is_none()
        });
        Ok(all)
    }

    /// Returns a custom resource of the operator.
    pub(crate) async fn resource(
        &self,
        operator: &OperatorPlan,
        key: &ObjectKey,
    ) -> Result<Option<Node>, Error> {
        let kind = self.kind(&operator.resource).await?;
        self.get(&kind, key).await
    }

    /// Returns the live object with the namespace and name of this one.
    pub(crate) async fn same(&self, kind: &Served, object: &Node) -> Result<Option<Node>, Error> {
        self.get(kind, &key_of(kind, object)).await
    }

    /// Returns an object that a pass requests.
    pub(crate) async fn object(
        &self,
        operator: &OperatorPlan,
        key: &ChildKey,
    ) -> Result<Option<Node>, Error> {
        let known = operator.kinds().find(|kind| kind.group_kind() == key.kind);
        let version = known.map_or("v1", |kind| &*kind.version);
        let kind = self.served(&key.kind, version).await?;
        self.get(&kind, &key.object).await
    }

    async fn get(&self, kind: &Served, key: &ObjectKey) -> Result<Option<Node>, Error> {
        let what = format!("get {} {}", kind.plural, key.name);
        described(&what, async {
            match self.cluster.get(kind, key).await {
                Err(ClusterError::NotFound(_)) => Ok(None),
                found => found.map(Some),
            }
        })
        .await
    }

    /// Returns the object as it would be after an apply by the operator, and the API server's message on fields that other
    /// managers own.
    pub(crate) async fn dry_run(
        &self,
        kind: &Served,
        manager: &str,
        object: &Node,
    ) -> Result<(Value, Option<String>), Error> {
        let (cluster, key) = (self.cluster.dry_run(), key_of(kind, object));
        let what = format!("apply {} {} as a dry run", kind.plural, key.name);
        let apply = async |force| cluster.apply(kind, &key, manager, force, object).await;
        described(&what, async {
            match apply(false).await {
                Ok(after) => Ok((after.to_json(), None)),
                Err(ClusterError::Conflict { message, .. }) => {
                    Ok((apply(true).await?.to_json(), Some(message)))
                }
                // Its namespace is not created yet.
                Err(ClusterError::NotFound(_)) => Ok((object.to_json(), None)),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// Returns the objects whose replicas an autoscaler sets.
    pub(crate) async fn scaled(
        &self,
        operator: &OperatorPlan,
    ) -> Result<BTreeSet<ChildKey>, Error> {
        let mut children = operator.children.iter();
        if !children.any(ChildPlan::may_be_scaled) {
            return Ok(BTreeSet::new());
        }
        let kind = kinds::resource("autoscaling", "v2", "HorizontalPodAutoscaler");
        let all = self.list(&self.kind(&kind).await?, None, "").await?;
        let target = |scaler: &Node| {
            let target = scaler.get("spec")?.get("scaleTargetRef")?;
            let text = |name| target.get(name).and_then(Node::as_str);
            let group = text("apiVersion").and_then(|version| version.split_once('/'));
            Some(ChildKey {
                kind: GroupKind {
                    group: group.map_or("", |(group, _)| group).into(),
                    kind: text("kind")?.into(),
                },
                object: ObjectKey {
                    namespace: scaler.meta_text("namespace").map(Into::into),
                    name: text("name")?.into(),
                },
            })
        };
        Ok(all.iter().filter_map(target).collect())
    }

    /// Sets the namespace of an object from a file that has none, like kubectl.
    pub(crate) fn place(&self, kind: &Served, object: &mut Node) {
        if !kind.namespaced || object.meta_text("namespace").is_some() {
            return;
        }
        let mut json = object.to_json();
        if let Some(Value::Object(metadata)) = json.get_mut("metadata") {
            metadata.insert(
                "namespace".to_owned(),
                self.cluster.default_namespace().into(),
            );
            *object = Node::from(&json);
        }
    }
}

/// Returns the kinds of children: those that the plan declares, and those of which the custom resources still have some, as their
/// inventories list them.
pub(crate) fn child_kinds<'n>(
    operator: &OperatorPlan,
    crs: impl IntoIterator<Item = &'n Node>,
) -> Vec<ResourceType> {
    let mut known: BTreeMap<GroupKind, ResourceType> = BTreeMap::new();
    for kind in operator.kinds() {
        known
            .entry(kind.group_kind())
            .or_insert_with(|| kind.clone());
    }
    for cr in crs {
        let Some(text) = cr.annotation(names::ANNOTATION_INVENTORY) else {
            continue;
        };
        for kind in Inventory::parse(text).kinds {
            known.entry(kind.clone()).or_insert_with(|| {
                let version = kinds::named(&kind.kind).map(|known| known.version);
                kinds::resource(&kind.group, version.as_deref().unwrap_or("v1"), &kind.kind)
            });
        }
    }
    known.into_values().collect()
}

/// Returns the object without the replicas that an autoscaler sets: a pass leaves them alone.
pub(crate) fn left_alone(object: &Node, scaled: &BTreeSet<ChildKey>) -> Node {
    if ChildKey::of(object).is_some_and(|key| scaled.contains(&key)) {
        without(object, &[Path::of_fields(REPLICAS)])
    } else {
        object.clone()
    }
}

/// Adds the request to its error.
async fn described<T>(
    what: &str,
    asked: impl Future<Output = Result<T, ClusterError>>,
) -> Result<T, Error> {
    asked.await.map_err(|source| Error::Request {
        what: what.to_owned(),
        source,
    })
}

/// Returns an item of a list with `apiVersion` and `kind`, which lists omit.
fn whole(kind: &Served, object: Node) -> Result<Node, ClusterError> {
    if let Some(fault) = Fault::all_of(&object).pop() {
        let name = key_of(kind, &object).name;
        return Err(ClusterError::Unreadable(format!("{name}: {fault}")));
    }
    Ok(kind.with_type(object))
}

fn key_of(kind: &Served, object: &Node) -> ObjectKey {
    let ObjectKey { namespace, name } = ObjectKey::of(object);
    ObjectKey {
        namespace: namespace.filter(|_| kind.namespaced),
        name,
    }
}
