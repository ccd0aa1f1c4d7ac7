//! Removes an installation.

use std::time::Duration;

use orkestra_cluster::wire::{Scope, Wire};
use orkestra_core::api::names;
use tokio::time::Instant;

use super::{
    Error, Inventory, Object,
    apply::{Kinds, read_inventory, until},
};

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
    wire: &Wire,
    removal: &Removal<'_>,
    dry: bool,
    report: &mut (dyn FnMut(&Object) + Send),
) -> Result<Remains, Error> {
    let inventory = read_inventory(wire, removal.namespace).await?.ok_or_else(|| {
        Error::Absent(format!(
            "the namespace {} has no installation of `ork install`: remove one of Helm with `helm uninstall`, one of kustomize with \
             `kubectl delete -k`",
            removal.namespace
        ))
    })?;
    if !removal.with_katalogs {
        refuse_in_use(wire).await?;
    }
    let mut kinds = Kinds::new(wire);
    let mut remains = Remains::default();
    let mut objects = inventory.objects();
    // The inventory goes after what it lists, and before its namespace.
    let first = objects
        .iter()
        .position(|object| !object.is("", "Namespace"));
    objects.insert(
        first.unwrap_or(objects.len()),
        Inventory::default().object(removal.namespace),
    );
    // The controller ends first: while it runs, it needs its permissions.
    objects.sort_by_key(|object| object.is("apps", "Deployment"));
    let mut gone = Vec::new();
    for object in objects.iter().rev() {
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
    let deadline = Instant::now() + removal.within;
    for object in gone.into_iter().filter(|object| object.is_kept()) {
        until(deadline, format!("{object} was not deleted"), async || {
            Ok(Kinds::new(wire).get(object).await?.is_none())
        })
        .await?;
    }
    Ok(remains)
}

/// Fails if a Katalog exists: without a controller, nobody removes the finalizers of its custom resources.
async fn refuse_in_use(wire: &Wire) -> Result<(), Error> {
    let found = wire.discover(names::GROUP, names::VERSION, "Katalog").await;
    let Some(kind) = found.map_err(Error::request("look up the kind of", "Katalogs"))? else {
        return Ok(());
    };
    let page = wire.list_page(&kind, &Scope::default(), 0, None).await;
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
