//! Releases a kind: removes our finalizer, label and inventory from its resources, and our labels from children that
//! Kubernetes does not collect. Children that have no owner reference because they keep values get one.
//!
//! ```text
//!  resources with our finalizer, label or inventory ──► inventories name the kinds of children
//!         │                                                      │
//!         │                        children with our owner label and without a controller: labels removed
//!         └──────────────────────────────────────────────────────┴──► then finalizer, label, inventory removed
//! ```
//!
//! It reads no template and no Katalog. The metadata of a resource is removed last, so that a crash in between loses nothing.
//! A resource that is being deleted is released too: Kubernetes collects what it owns.
//!
//! One file: each write of a release depends on the marks that the others read.

mod patches;
mod retire;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, stream};
use kube::api::ObjectMeta;
use orkestra_cluster::requests::{Cluster, Served};
use orkestra_engine::reconcile::{
    inventory::{DeclaredKinds, Inventory},
    record::{OperatedMarks, TRACKING},
};
use orkestra_language::api::{OperatedKind, names};
use orkestra_object::value::{Path, Projection};
use orkestra_plan::{self, GroupKind, OperatorPlan};
use parking_lot::Mutex;
use serde_json::Value;

use self::patches::{disown, hand_over, unmark};
use super::calls::{MetadataFilter, RequestError, ServedResource};

/// How many writes run concurrently.
const WRITES: usize = 8;
/// How many times one object is read again after another client changed it first.
const ATTEMPTS: usize = 5;

/// The counts of a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Custom resources.
    pub resources: usize,
    /// Children without an owner reference.
    pub children: usize,
}

/// Why a release is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The objects could not be listed.
    #[error(transparent)]
    Read(#[from] RequestError),
    /// Some of them could not be written; the others were.
    #[error("{failed} objects could not be cleaned up; first error: {first}")]
    Write {
        /// Their number.
        failed: usize,
        /// The first error.
        first: RequestError,
    },
    /// It was ended after that time.
    #[error("the release did not end within {} s", .0.as_secs())]
    Late(Duration),
}

/// The number of custom resources left during a release. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ReleaseProgress(Arc<Mutex<Option<(usize, usize)>>>);

impl ReleaseProgress {
    /// Returns how many custom resources are left, and how many there were; none before they were listed.
    pub fn left(&self) -> Option<(usize, usize)> {
        *self.0.lock()
    }

    fn begin(&self, all: usize) {
        *self.0.lock() = Some((all, all));
    }

    fn one_is_done(&self) {
        let mut progress = self.0.lock();
        if let Some((left, _)) = &mut *progress {
            *left = left.saturating_sub(1);
        }
    }
}

/// Removes our finalizer, label and inventory from every resource of `kind`, and our labels from their children without a
/// controller. A kind that is no longer served has nothing to release. `progress` counts the resources.
///
/// # Errors
/// [`ReleaseError`]: the release is incomplete.
pub async fn release_kind(
    cluster: &Cluster,
    kind: &OperatedKind,
    progress: &ReleaseProgress,
) -> Result<Released, ReleaseError> {
    let declared = DeclaredKinds::recorded(kind);
    let is_built_in = orkestra_plan::built_in(&group_kind(kind)).is_some();
    let unmark = |meta: &ObjectMeta| {
        if is_built_in && !is_operated(meta, is_built_in) {
            return None;
        }
        // The label of a child is that of the operator that created it, which would restore it.
        let is_child = marks(meta).child;
        unmark(meta, &declared, (!is_child).then_some(names::LABEL_MANAGED))
    };
    let is_marked = |meta: &ObjectMeta| unmark(meta).is_some();
    let Some((resource, marked)) = list(cluster, kind, &declared, &is_marked).await? else {
        return Ok(Released::default());
    };
    progress.begin(marked.len());
    let marked = retire::retire_all(&resource, kind, marked).await;
    let children = release_children(cluster, kind, &marked, &declared).await?;
    let resources = write_all(&resource, marked, &unmark, &|| progress.one_is_done()).await?;
    Ok(Released {
        resources,
        children,
    })
}

/// Returns the record of an operated kind, for the status of a Katalog and for a release.
pub fn operated(plan: &OperatorPlan) -> OperatedKind {
    let resource = &plan.resource;
    let mut kind = OperatedKind {
        group: resource.group.to_string(),
        kind: resource.kind.to_string(),
        plural: resource
            .plural
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        version: resource.version.to_string(),
        ..OperatedKind::default()
    };
    DeclaredKinds::of(plan).record(&mut kind);
    kind
}

/// Returns the resources of a kind that `is_kept` accepts, and where they are served.
pub(crate) async fn list(
    cluster: &Cluster,
    kind: &OperatedKind,
    declared: &DeclaredKinds,
    is_kept: MetadataFilter<'_>,
) -> Result<Option<(ServedResource, Vec<ObjectMeta>)>, RequestError> {
    let (places, fields) = (&declared.places, projection(declared));
    let known = ServedResource::operated(cluster, kind);
    let (resource, listed) = match known.list_metadata(places, None, &fields, is_kept).await {
        Err(error) if error.is_not_found() => {
            // The version may be gone while the kind is served in another version.
            let any_version = group_kind(kind);
            let Some(other) = ServedResource::discover(cluster, &any_version).await? else {
                return Ok(None);
            };
            let other = other.in_part();
            let listed = other.list_metadata(places, None, &fields, is_kept).await?;
            (other, listed)
        }
        Err(error) if error.is_forbidden() && is_gone(cluster, kind).await => return Ok(None),
        listed => (known, listed?),
    };
    Ok(Some((resource, listed)))
}

/// True if it is known that no object of a kind exists: without permission, a kind that is not served is refused like any other.
async fn is_gone(cluster: &Cluster, kind: &OperatedKind) -> bool {
    let (name, kind) = (format!("{}.{}", kind.plural, kind.group), group_kind(kind));
    matches!(cluster.find(&Served::crds(), &name).await, Ok(None))
        && matches!(ServedResource::discover(cluster, &kind).await, Ok(None))
}

/// Returns the metadata that is read of custom resources and their children: users may add any amount of other metadata.
fn projection(declared: &DeclaredKinds) -> Projection {
    let fields = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "deletionTimestamp",
        "finalizers",
        "ownerReferences",
    ];
    let labels = names::CHILD_LABELS.iter().chain(&names::OF_CHILDREN);
    let annotations = [
        names::ANNOTATION_INVENTORY,
        names::ANNOTATION_CHILD,
        names::ANNOTATION_OWNER,
        names::ANNOTATION_ADOPTED,
    ];
    let ours = labels
        .map(|name| ["labels", *name])
        .chain(annotations.map(|name| ["annotations", name]));
    let declared = declared.labels.iter().map(|key| [key.field(), key.key()]);
    let marks = ours
        .chain(TRACKING)
        .chain(declared)
        .map(|[field, name]| Path::of_fields(["metadata", field, name]));
    let fields = fields
        .iter()
        .map(|field| Path::of_fields(["metadata", *field]));
    let all: Vec<Path> = fields.chain(marks).collect();
    Projection::new(&all)
}

/// Removes our labels from the children of `parents`, of the kind `owner`, that have no controller, or makes them owned.
async fn release_children(
    cluster: &Cluster,
    owner: &OperatedKind,
    parents: &[ObjectMeta],
    declared: &DeclaredKinds,
) -> Result<usize, ReleaseError> {
    let by_uid: BTreeMap<&str, &ObjectMeta> = parents
        .iter()
        .filter_map(|meta| Some((meta.uid.as_deref()?, meta)))
        .collect();
    let mut released = 0;
    for kind in parents
        .iter()
        .flat_map(|meta| inventory(meta, declared).kinds.clone())
        .collect::<BTreeSet<_>>()
    {
        let Some(resource) = ServedResource::discover(cluster, &kind).await? else {
            continue;
        };
        let resource = resource.in_part();
        let free = |meta: &ObjectMeta| {
            let parent = by_uid.get(label(meta, names::LABEL_OWNER_UID)?)?;
            hand_over((owner, parent), &kind, meta).or_else(|| disown(&kind, meta))
        };
        let is_theirs = |meta: &ObjectMeta| free(meta).is_some();
        let (places, fields) = (declared.places_of(&kind), projection(declared));
        let labelled = format!("{}=true", names::LABEL_MANAGED);
        let labelled = resource
            .list_metadata(&places, Some(&labelled), &fields, &is_theirs)
            .await?;
        released += write_all(&resource, labelled, &free, &|| {}).await?;
    }
    Ok(released)
}

/// Returns the patch for an object with that metadata; none if nothing has to be written.
type Change<'a> = &'a (dyn Fn(&ObjectMeta) -> Option<Value> + Sync);

/// Sends the patches of `change`, a few objects at a time and each to completion; returns how many changed. `done_one` is
/// called for each object that is released.
async fn write_all(
    resource: &ServedResource,
    objects: Vec<ObjectMeta>,
    change: Change<'_>,
    done_one: &(dyn Fn() + Sync),
) -> Result<usize, ReleaseError> {
    let writes = objects
        .into_iter()
        .map(|meta| write(resource, meta, change));
    let results: Vec<_> = stream::iter(writes)
        .buffer_unordered(WRITES)
        .inspect(|result| {
            if result.is_ok() {
                done_one();
            }
        })
        .collect()
        .await;
    let (mut done, mut failed, mut first) = (0, 0, None);
    for result in results {
        match result {
            Ok(changed) => done += usize::from(changed),
            Err(error) => {
                failed += 1;
                first.get_or_insert(error);
            }
        }
    }
    first.map_or(Ok(done), |first| Err(ReleaseError::Write { failed, first }))
}

/// Sends the patch of `change` for the object; reads it again if another client changed it first.
async fn write(
    resource: &ServedResource,
    mut meta: ObjectMeta,
    change: Change<'_>,
) -> Result<bool, RequestError> {
    let (namespace, name) = (
        meta.namespace.clone(),
        meta.name.clone().unwrap_or_default(),
    );
    for attempt in 1.. {
        let Some(patch) = change(&meta) else {
            return Ok(false);
        };
        match resource.merge(namespace.as_deref(), &name, &patch).await {
            Ok(_) => return Ok(true),
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => {}
            Err(error) => return Err(error),
        }
        match resource.get(namespace.as_deref(), &name).await? {
            Some(object) if object.metadata.uid == meta.uid => meta = object.metadata,
            _ => return Ok(false),
        }
    }
    Ok(false)
}

/// True if an operator of its kind manages the object.
pub(crate) fn is_operated(meta: &ObjectMeta, built_in: bool) -> bool {
    marks(meta).is_operated(built_in)
}

fn marks(meta: &ObjectMeta) -> OperatedMarks {
    let finalizers = meta.finalizers.as_deref().unwrap_or_default();
    OperatedMarks {
        finalizer: finalizers.iter().any(|name| name == names::FINALIZER),
        managed: label(meta, names::LABEL_MANAGED).is_some(),
        child: names::OF_CHILDREN
            .iter()
            .any(|name| label(meta, name).is_some()),
        inventory: annotation(meta, names::ANNOTATION_INVENTORY).is_some(),
    }
}

/// Returns the declared part of its inventory: every client that may write a resource may write its annotations.
fn inventory(meta: &ObjectMeta, declared: &DeclaredKinds) -> Arc<Inventory> {
    let text = annotation(meta, names::ANNOTATION_INVENTORY);
    let written = Arc::new(text.map(Inventory::parse).unwrap_or_default());
    written.checked(declared)
}

fn label<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.labels.as_ref()?.get(name).map(String::as_str)
}

fn annotation<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(name).map(String::as_str)
}

/// Returns the kind without plural and version.
pub(crate) fn group_kind(kind: &OperatedKind) -> GroupKind {
    GroupKind {
        group: kind.group.as_str().into(),
        kind: kind.kind.as_str().into(),
    }
}

#[cfg(test)]
mod tests;
