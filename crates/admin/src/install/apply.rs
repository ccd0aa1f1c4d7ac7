//! Writes the objects of an installation, in order.

use std::{collections::HashMap, fmt::Write as _, time::Duration};

use orkestra_cluster::requests::{Cluster, ClusterError, Deletion, Propagation, Served};
use orkestra_language::api::names;
use orkestra_object::value::{Key, Node};
use orkestra_plan::{GroupKind, ObjectKey};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    Error, INVENTORY, Inventory, MANAGER, ManifestObject,
    objects::{condition, text},
    unavailable,
};

/// How often the state of an object is read while it is awaited.
const POLL: Duration = Duration::from_millis(250);
/// The time for the API server to serve new CRDs.
const ESTABLISHED: Duration = Duration::from_mins(1);

/// Whether anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DryRun {
    /// Write.
    No,
    /// The API server checks every write and stores none.
    Server,
}

/// What to apply.
#[derive(Clone, Copy, Debug)]
pub struct Apply<'a> {
    /// The objects in order, with their inventory.
    pub objects: &'a [ManifestObject],
    /// The namespace of the installation.
    pub namespace: &'a str,
    /// Take fields over from other field managers.
    pub force: bool,
    /// Whether anything is written.
    pub dry_run: DryRun,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyOutcome {
    /// It did not exist before.
    Created,
    /// It was changed.
    Configured,
    /// It is as it was.
    Unchanged,
    /// It belonged to an earlier installation, and was deleted.
    Pruned,
    /// A dry run could not check it: its namespace or its kind does not exist yet.
    Unchecked,
}

impl ApplyOutcome {
    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
            Self::Pruned => "pruned",
            Self::Unchecked => "not checked: its namespace or kind does not exist yet",
        }
    }
}

/// Applies the objects in order, deletes those of an earlier installation that are not among them, and reports each.
///
/// The inventory lists the objects of both installations before the first write, and those of this one after the last, so that an
/// interrupted installation is completed by the next and loses no object.
///
/// # Errors
/// The first failure; what was applied stays.
pub async fn apply(
    cluster: &Cluster,
    wanted: &Apply<'_>,
    report: &mut (dyn FnMut(&ManifestObject, ApplyOutcome) + Send),
) -> Result<(), Error> {
    let cluster = match wanted.dry_run {
        DryRun::No => cluster.clone(),
        DryRun::Server => cluster.dry_run(),
    };
    let mut kinds = Kinds::new(&cluster);
    let before = read_inventory(&cluster, wanted.namespace)
        .await?
        .unwrap_or_default();
    let is_inventory = |object: &ManifestObject| {
        object.is("", "ConfigMap") && object.key.name.as_str() == INVENTORY
    };
    let others: Vec<ManifestObject> = wanted
        .objects
        .iter()
        .filter(|object| !is_inventory(object))
        .cloned()
        .collect();
    let now = Inventory::of(&others);
    let superfluous = before.without(&now);
    for object in wanted.objects {
        let widened;
        let object = if is_inventory(object) {
            widened = now.with(&superfluous).object(wanted.namespace);
            &widened
        } else {
            object
        };
        let done = write(&mut kinds, object, wanted).await?;
        report(object, done);
    }
    for object in superfluous
        .objects()
        .iter()
        .rev()
        .filter(|object| !object.is_kept())
    {
        kinds.delete(object).await?;
        report(object, ApplyOutcome::Pruned);
    }
    if !superfluous.objects().is_empty() {
        write(&mut kinds, &now.object(wanted.namespace), wanted).await?;
    }
    Ok(())
}

/// Applies an object. A CRD is awaited until its kind is served.
async fn write(
    kinds: &mut Kinds<'_>,
    object: &ManifestObject,
    wanted: &Apply<'_>,
) -> Result<ApplyOutcome, Error> {
    let is_dry = wanted.dry_run == DryRun::Server;
    let kind = match kinds.of(object).await {
        Err(error) if is_dry && error.is_not_served() => return Ok(ApplyOutcome::Unchecked),
        kind => kind?,
    };
    let cluster = kinds.cluster;
    let before =
        found(cluster.get(&kind, &object.key).await).map_err(Error::request("read", object))?;
    let answer = cluster
        .apply(&kind, &object.key, MANAGER, wanted.force, &object.body)
        .await;
    let after = match answer {
        Err(ClusterError::NotFound(_)) if is_dry => return Ok(ApplyOutcome::Unchecked),
        Err(ClusterError::Conflict { causes, .. }) if !causes.is_empty() => {
            let mut fields = String::new();
            for cause in &causes {
                let comma = if fields.is_empty() { "" } else { ", " };
                let manager = cause.manager().unwrap_or("another manager");
                let _ = write!(fields, "{comma}{} ({manager})", cause.field);
            }
            return Err(Error::Conflict {
                object: object.to_string(),
                fields,
            });
        }
        answer => answer.map_err(Error::request("apply", object))?,
    };
    if object.is_definition() && !is_dry {
        established(cluster, &kind, object).await?;
    }
    let version = |object: &Node| text(object, &["metadata", "resourceVersion"]).map(str::to_owned);
    Ok(match before {
        None => ApplyOutcome::Created,
        Some(before) if version(&before) == version(&after) => ApplyOutcome::Unchanged,
        Some(_) => ApplyOutcome::Configured,
    })
}

/// Waits until the API server serves the kind of a CRD.
async fn established(
    cluster: &Cluster,
    kind: &Served,
    object: &ManifestObject,
) -> Result<(), Error> {
    until(
        Instant::now() + ESTABLISHED,
        format!("{object} was not established"),
        async || {
            let live = cluster
                .get(kind, &object.key)
                .await
                .map_err(Error::request("read", object))?;
            Ok(condition(&live, "Established") == Some("True"))
        },
    )
    .await
}

/// Waits until the Deployments among the objects are available with all their replicas updated.
///
/// # Errors
/// [`Error::NotAvailable`] with the reason that the Deployment or its Pods have; failures of requests.
pub async fn wait(
    cluster: &Cluster,
    objects: &[ManifestObject],
    within: Duration,
) -> Result<(), Error> {
    let deadline = Instant::now() + within;
    let mut kinds = Kinds::new(cluster);
    for object in objects
        .iter()
        .filter(|object| object.is("apps", "Deployment"))
    {
        let kind = kinds.of(object).await?;
        let available = until(deadline, String::new(), async || {
            let live = cluster
                .get(&kind, &object.key)
                .await
                .map_err(Error::request("read", object))?;
            Ok(is_rolled_out(&live))
        });
        if let Err(Error::Late(_)) = available.await {
            return Err(Error::NotAvailable {
                object: object.to_string(),
                why: unavailable::look(cluster, kinds.get(object).await?.as_ref()).await?,
            });
        }
    }
    Ok(())
}

/// True if all replicas of a Deployment are of its current generation, and available.
fn is_rolled_out(live: &Node) -> bool {
    let number = |path: [&str; 2]| {
        let found = path.iter().try_fold(live, |node, field| node.get(field));
        found.and_then(Node::as_i64).unwrap_or_default()
    };
    let wanted = number(["spec", "replicas"]);
    number(["status", "observedGeneration"]) >= number(["metadata", "generation"])
        && number(["status", "updatedReplicas"]) == wanted
        && number(["status", "availableReplicas"]) >= wanted
        && number(["status", "replicas"]) == wanted
}

/// Asks `is` until it is true or the deadline passes.
pub(crate) async fn until(
    deadline: Instant,
    late: String,
    is: impl AsyncFn() -> Result<bool, Error>,
) -> Result<(), Error> {
    loop {
        if is().await? {
            return Ok(());
        }
        if Instant::now() + POLL > deadline {
            return Err(Error::Late(late));
        }
        sleep(POLL).await;
    }
}

/// Returns the inventory of an installation; `None` if there is none.
pub(crate) async fn read_inventory(
    cluster: &Cluster,
    namespace: &str,
) -> Result<Option<Inventory>, Error> {
    let object = Inventory::default().object(namespace);
    let kind = Kinds::new(cluster).of(&object).await?;
    let live =
        found(cluster.get(&kind, &object.key).await).map_err(Error::request("read", &object))?;
    Ok(live.as_ref().and_then(Inventory::read))
}

/// Turns a missing object into `None`.
pub(crate) fn found(answer: Result<Node, ClusterError>) -> Result<Option<Node>, ClusterError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(ClusterError::NotFound(_) | ClusterError::NotServed(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// True if a protection against deletion refused a request: its message names the annotation that overrides it.
fn is_protected(error: &ClusterError) -> bool {
    use ClusterError::{Denied, Forbidden, Invalid};
    let (Denied { message } | Forbidden { message, .. } | Invalid { message, .. }) = error else {
        return false;
    };
    message.contains(names::ANNOTATION_BREAK_GLASS)
}

/// Kinds as the API server serves them, each looked up once.
pub(crate) struct Kinds<'w> {
    cluster: &'w Cluster,
    known: HashMap<(Key, Key, Key), Served>,
}

impl<'w> Kinds<'w> {
    pub(crate) fn new(cluster: &'w Cluster) -> Self {
        Self {
            cluster,
            known: HashMap::new(),
        }
    }

    pub(crate) async fn of(&mut self, object: &ManifestObject) -> Result<Served, Error> {
        let about = (
            object.group.clone(),
            object.version.clone(),
            object.kind.clone(),
        );
        if let Some(known) = self.known.get(&about) {
            return Ok(known.clone());
        }
        let kind = GroupKind {
            group: object.group.clone(),
            kind: object.kind.clone(),
        };
        let built_in = if object.is_definition() {
            Some(Served::crds())
        } else {
            orkestra_operator::served::built_in(&kind, &object.version)
        };
        let served = if built_in.is_some() {
            built_in
        } else {
            let asked = self
                .cluster
                .discover(&object.group, &object.version, &object.kind)
                .await;
            asked.map_err(Error::request("look up the kind of", object))?
        };
        let served = served.ok_or_else(|| {
            let what = format!("{} of {}/{}", object.kind, object.group, object.version);
            Error::request("apply", object)(ClusterError::NotServed(what))
        })?;
        self.known.insert(about, served.clone());
        Ok(served)
    }

    /// Deletes an object; a missing one is not an error. A protection against deletion is overridden: an uninstallation is never
    /// blocked.
    pub(crate) async fn delete(&mut self, object: &ManifestObject) -> Result<(), Error> {
        let kind = match self.of(object).await {
            Err(error) if error.is_not_served() => return Ok(()),
            kind => kind?,
        };
        let how = Deletion {
            propagation: Propagation::Background,
            uid: None,
            resource_version: None,
        };
        let mut deleted = self.cluster.delete(&kind, &object.key, &how).await;
        if deleted.as_ref().err().is_some_and(is_protected) {
            let body = json!({ "metadata": { "annotations": {
                names::ANNOTATION_BREAK_GLASS: "uninstalled by ork",
            } } });
            let body = Node::from(&body);
            let patched = self
                .cluster
                .merge_patch(&kind, &object.key, None, MANAGER, &body)
                .await;
            patched.map_err(Error::request("annotate", object))?;
            deleted = self.cluster.delete(&kind, &object.key, &how).await;
        }
        match deleted {
            Ok(_) | Err(ClusterError::NotFound(_) | ClusterError::NotServed(_)) => Ok(()),
            Err(error) => Err(Error::request("delete", object)(error)),
        }
    }

    /// Returns an object; `None` if it does not exist.
    pub(crate) async fn get(&mut self, object: &ManifestObject) -> Result<Option<Node>, Error> {
        let kind = match self.of(object).await {
            Err(error) if error.is_not_served() => return Ok(None),
            kind => kind?,
        };
        let key: &ObjectKey = &object.key;
        found(self.cluster.get(&kind, key).await).map_err(Error::request("read", object))
    }
}
