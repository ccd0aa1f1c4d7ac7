//! Removes an installation.
//!
//! ```text
//!  Deployment ── its Pods end ──► what its gateway wrote ──► all other objects, in reverse order
//! ```
//!
//! Configurations of webhooks go once no controller runs that would restore them, and before anything that they could refuse.

use std::time::Duration;

use orkestra_cluster::requests::{Cluster, ClusterError, Scope};
use orkestra_language::api::names;
use orkestra_object::value::Node;
use orkestra_plan::rbac;
use tokio::time::Instant;

use super::{
    Error, Inventory, ManifestObject, RELEASE,
    apply::{Kinds, read_inventory, until},
    unavailable::{list_pods, pods_of},
};
use orkestra_gateway::{self, Registered, Settings, Withdrawal};

/// What to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal<'a> {
    /// The namespace of the installation.
    pub namespace: &'a str,
    /// Remove the CRDs too, and with them all Katalogs.
    pub crds: bool,
    /// Remove the namespaces of the installation too, with everything in them.
    pub namespaces: bool,
    /// Continue although Katalogs exist.
    pub with_katalogs: bool,
    /// The time for the Pods to end, and for CRDs and namespaces to be gone.
    pub within: Duration,
}

/// What an uninstallation left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// Objects that stay, since their removal was not requested.
    pub kept: Vec<String>,
}

/// Removes the objects of an installation in reverse order and reports each. With `dry`, nothing is removed.
///
/// # Errors
/// [`Error::Absent`] without an inventory, [`Error::InUse`] if Katalogs exist; failures of requests.
pub async fn remove(
    cluster: &Cluster,
    removal: &Removal<'_>,
    dry: bool,
    report: &mut (dyn FnMut(&dyn std::fmt::Display) + Send),
) -> Result<Remains, Error> {
    let inventory = read_inventory(cluster, removal.namespace).await?.ok_or_else(|| {
        Error::Absent(format!(
            "the namespace {} has no installation of `ork install`: remove one of Helm with `helm uninstall`, one of kustomize with \
             `kubectl delete -k`",
            removal.namespace
        ))
    })?;
    if !removal.with_katalogs {
        refuse_in_use(cluster).await?;
    }
    let mut kinds = Kinds::new(cluster);
    let mut remains = Remains::default();
    let objects = with_inventory(inventory.objects(), removal.namespace);
    let deadline = Instant::now() + removal.within;
    let is_controller = |object: &ManifestObject| object.is("apps", "Deployment");
    let (controllers, others): (Vec<ManifestObject>, Vec<ManifestObject>) =
        objects.into_iter().partition(is_controller);
    // The controller ends first: while it runs, it needs its permissions.
    let settings = settings(&mut kinds, &controllers, removal.namespace).await?;
    for object in controllers.iter().rev() {
        let live = kinds.get(object).await?;
        let pods = live.as_ref().and_then(pods_of);
        report(object);
        if !dry {
            kinds.delete(object).await?;
            if let Some(pods) = pods {
                ended(cluster, object, &pods, deadline).await?;
            }
        }
    }
    remove_webhooks(cluster, &settings, dry, &mut remains, report).await?;
    let mut gone = Vec::new();
    for object in others.iter().rev() {
        let is_removed = (!object.is_definition() || removal.crds)
            && (!object.is("", "Namespace") || removal.namespaces);
        if !is_removed {
            remains.kept.push(object.to_string());
            continue;
        }
        report(object);
        if !dry {
            kinds.delete(object).await?;
            gone.push(object);
        }
    }
    for object in gone.into_iter().filter(|object| object.is_kept()) {
        until(deadline, format!("{object} was not deleted"), async || {
            Ok(Kinds::new(cluster).get(object).await?.is_none())
        })
        .await?;
    }
    Ok(remains)
}

/// Adds the inventory to the objects: it is removed after the objects that it lists, and before its namespace.
fn with_inventory(mut objects: Vec<ManifestObject>, namespace: &str) -> Vec<ManifestObject> {
    let first = objects
        .iter()
        .position(|object| !object.is("", "Namespace"));
    objects.insert(
        first.unwrap_or(objects.len()),
        Inventory::default().object(namespace),
    );
    objects
}

/// Removes what the webhooks registered at the API server.
async fn remove_webhooks(
    cluster: &Cluster,
    settings: &Settings,
    dry: bool,
    remains: &mut Remains,
    report: &mut (dyn FnMut(&dyn std::fmt::Display) + Send),
) -> Result<(), Error> {
    let problem = Error::request("remove", "the configurations of the webhooks");
    let registered = orkestra_gateway::registered(cluster, settings).await;
    for registered in registered.map_err(problem)? {
        if let Some(why) = &registered.kept {
            remains.kept.push(format!("{registered}, because {why}"));
            continue;
        }
        report(&registered);
        if !dry {
            let removed = orkestra_gateway::remove(cluster, &registered).await;
            removed.map_err(Error::request("remove", &registered))?;
        }
    }
    Ok(())
}

/// Removes what the webhooks of an installation registered, once the Deployment among `objects` has webhooks switched off: the user who
/// installs has the permission, and what the API server calls must not point to Pods that do not answer. Reports each object. A permission
/// that the user lacks is no error: the controller does the same when it starts to lead.
///
/// # Errors
/// A request that failed for another reason.
pub async fn withdraw(
    cluster: &Cluster,
    objects: &[ManifestObject],
    namespace: &str,
    report: &mut (dyn FnMut(&dyn std::fmt::Display) + Send),
) -> Result<Remains, Error> {
    let mut remains = Remains::default();
    for registered in withdrawn(cluster, objects, namespace).await? {
        if let Some(why) = &registered.kept {
            remains.kept.push(format!("{registered}, because {why}"));
            continue;
        }
        match orkestra_gateway::remove(cluster, &registered).await {
            Ok(()) => report(&registered),
            Err(ClusterError::Forbidden { message, .. }) => {
                remains
                    .kept
                    .push(format!("{registered}, because {message}"));
            }
            Err(error) => return Err(Error::request("remove", &registered)(error)),
        }
    }
    Ok(remains)
}

/// Returns what an installation registered and does not serve with these objects; nothing without permission to list it.
pub(crate) async fn withdrawn(
    cluster: &Cluster,
    objects: &[ManifestObject],
    namespace: &str,
) -> Result<Vec<Registered>, Error> {
    let deployments = objects.iter().filter(|one| one.is("apps", "Deployment"));
    let mut all = Vec::new();
    for deployment in deployments {
        let arguments = arguments(&deployment.body);
        if !arguments.contains(&"--webhooks=off") {
            continue;
        }
        let lease = value(&arguments, "--leader-elect-resource-name");
        let names = settings_of(&arguments, namespace);
        let withdrawal = Withdrawal {
            installation: format!("{namespace}/{}", lease.unwrap_or(rbac::LEASE)),
            namespace: namespace.to_owned(),
            name: names.name,
            serves: false,
        };
        match withdrawal.registered(cluster).await {
            Ok(registered) => all.extend(registered),
            Err(ClusterError::Forbidden { .. }) => {}
            Err(error) => {
                let what = "the configurations of the webhooks";
                return Err(Error::request("list", what)(error));
            }
        }
    }
    Ok(all)
}

/// Returns the names of the gateway: those of the controller's arguments, if it still exists, or else those of `ork install`.
async fn settings(
    kinds: &mut Kinds<'_>,
    controllers: &[ManifestObject],
    namespace: &str,
) -> Result<Settings, Error> {
    let mut settings = settings_of(&[], namespace);
    for object in controllers {
        if let Some(live) = kinds.get(object).await? {
            settings = settings_of(&arguments(&live), namespace);
        }
    }
    Ok(settings)
}

/// Returns the names of the gateway that the arguments of a controller give it.
fn settings_of(arguments: &[&str], namespace: &str) -> Settings {
    let name = value(arguments, "--webhooks-name").map(str::to_owned);
    Settings {
        name: name.unwrap_or_else(|| format!("{RELEASE}-webhooks")),
        namespace: namespace.to_owned(),
        secret: value(arguments, "--webhooks-secret")
            .unwrap_or(rbac::WEBHOOKS_SECRET)
            .to_owned(),
    }
}

/// Returns the value of a flag: the last one, as the controller takes it.
fn value<'a>(arguments: &[&'a str], flag: &str) -> Option<&'a str> {
    let at = arguments.iter().rposition(|argument| *argument == flag)?;
    arguments.get(at + 1).copied()
}

/// Returns the arguments of all containers of a Deployment.
fn arguments(deployment: &Node) -> Vec<&str> {
    let path = ["spec", "template", "spec", "containers"];
    let containers = path
        .iter()
        .try_fold(deployment, |node, field| node.get(field));
    let containers = containers.and_then(Node::as_list).unwrap_or_default();
    containers
        .iter()
        .filter_map(|container| container.get("args")?.as_list())
        .flatten()
        .filter_map(Node::as_str)
        .collect()
}

/// Waits until the Pods of a Deployment have ended.
async fn ended(
    cluster: &Cluster,
    deployment: &ManifestObject,
    pods: &Scope,
    deadline: Instant,
) -> Result<(), Error> {
    let late = format!("the Pods of {deployment} did not end");
    until(deadline, late, async || {
        Ok(list_pods(cluster, pods).await?.is_empty())
    })
    .await
}

/// Fails if a Katalog exists: without a controller the finalizers of its custom resources would remain.
async fn refuse_in_use(cluster: &Cluster) -> Result<(), Error> {
    let found = cluster
        .discover(names::GROUP, names::VERSION, "Katalog")
        .await;
    let Some(kind) = found.map_err(Error::request("look up the kind of", "Katalogs"))? else {
        return Ok(());
    };
    let page = cluster.list_page(&kind, &Scope::default(), 0, None).await;
    let katalogs = page
        .map_err(Error::request("list", "Katalogs"))?
        .items
        .len();
    if katalogs == 0 {
        return Ok(());
    }
    Err(Error::InUse(format!(
        "Katalogs exist ({katalogs}), and the finalizers of their custom resources would stay: delete the Katalogs first (`kubectl delete \
         katalogs --all --all-namespaces`), or use `--ignore-katalogs` to keep everything that they operate as it is"
    )))
}
