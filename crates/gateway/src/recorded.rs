//! Reads the conversions that definitions record and no Katalog declares any more.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use orkestra_cluster::{
    requests::{ClusterError, RETRY, Served},
    watch::{Handle, Presence},
};
use orkestra_object::decode::Version;
use tokio::{sync::Notify, time::timeout};

use super::{
    Gateway,
    catalogue::{Conversions, KindConversion},
    keeper,
    record::conversion_of,
};

/// How long a conversion waits at the start until Katalogs and definitions have been read.
const START: Duration = Duration::from_secs(5);

/// Follows the definitions of this installation, and publishes the conversions that they record and no Katalog declares; never
/// returns.
pub(crate) async fn follow(gateway: &Gateway) {
    let changed = Arc::new(Notify::new());
    let watch = keeper::watch(gateway, Served::crds(), &changed);
    watch.looked_at().await;
    let mut listed = gateway.listed.clone();
    let mut catalogue = gateway.changed.subscribe();
    let mut read = BTreeMap::new();
    let mut failures = 0;
    loop {
        listed.mark_unchanged();
        catalogue.mark_unchanged();
        let retry = match look(gateway, &watch, &mut read).await {
            Ok(()) => {
                failures = 0;
                None
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read the conversion of a definition");
                failures += 1;
                Some(RETRY.after(failures - 1))
            }
        };
        let again = async {
            match retry {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed.notified() => {}
            Ok(()) = catalogue.changed() => {}
            Ok(()) = listed.changed() => {}
            () = again => {}
        }
    }
}

/// Reads the definitions that changed.
async fn look(
    gateway: &Gateway,
    watch: &Handle<Presence>,
    read: &mut BTreeMap<String, (Version, Option<KindConversion>)>,
) -> Result<(), ClusterError> {
    // Definitions whose Katalogs are not known yet need not be read.
    if !*gateway.listed.borrow() && gateway.recorded.borrow().is_some() {
        return Ok(());
    }
    let catalogue = gateway.catalogue.load_full();
    let mut current = BTreeMap::new();
    for live in watch.store().snapshot() {
        let (name, version) = (&*live.id.key.name, &live.id.resource_version);
        if catalogue.declares(name) {
            continue;
        }
        let known = match read.get(name) {
            Some(known) if known.0 == *version => known.clone(),
            before => {
                let definition = gateway.cluster.find(&Served::crds(), name).await?;
                let conversion = definition.as_ref().and_then(conversion_of);
                // A record that another client removed is restored from here.
                let before = before.and_then(|(_, before)| before.clone());
                (version.clone(), conversion.or(before))
            }
        };
        current.insert(name.to_owned(), known);
    }
    *read = current;
    let conversions = read.values().filter_map(|(_, conversion)| {
        let conversion = conversion.clone()?;
        Some((conversion.key(), conversion))
    });
    let conversions: Conversions = conversions.collect();
    gateway.recorded.send_replace(Some(Arc::new(conversions)));
    Ok(())
}

/// Waits until it is known which conversions there are, unless one of the group is known already: at the start, the API server asks
/// before Katalogs and definitions are read.
pub(crate) async fn until_known(gateway: &Gateway, desired_api_version: &str) {
    let (group, _) = desired_api_version.split_once('/').unwrap_or_default();
    let mut recorded = gateway.recorded.subscribe();
    let is_recorded = |all: &Option<Arc<Conversions>>| {
        let mut all = all.iter().flat_map(|all| all.keys());
        all.any(|(of, _)| **of == *group)
    };
    if gateway.catalogue.load().converts(group) || is_recorded(&recorded.borrow()) {
        return;
    }
    let mut listed = gateway.listed.clone();
    let known = async {
        let _ = listed.wait_for(|listed| *listed).await;
        let _ = recorded.wait_for(Option::is_some).await;
    };
    let _ = timeout(START, known).await;
}
