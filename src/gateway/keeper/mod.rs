//! Writes the configurations, policies and conversions, and restores them when others change them.
//!
//! ```text
//!  plans, authorities ──► desired ──► webhook answers? ──► applied (server-side apply) ──► trusted: the next certificate may serve
//!                                         ▲                        │
//!   watch: another client changed one ─────┴── removed: no longer desired
//! ```
//!
//! Nothing points at a webhook that does not answer. Each object is applied again when its resourceVersion is newer than that of
//! our last write: an apply that changes nothing keeps the version, so nothing loops.

mod leaving;
mod write;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use orkestra_cluster::{
    requests::{Cluster, RETRY, Scope, Served},
    watch::{Handle, Presence, Watched},
};
use orkestra_core::{decode::Version, value::hash};
use tokio::{sync::Notify, time::Instant};

use super::{
    Gateway, MANAGER,
    catalogue::Catalogue,
    definitions::{self, Kept},
    desired::{self, Desired, LABEL, key},
    probe::Probes,
    remove,
};

/// How long a watch may take to show what was written; then it is applied again.
const SHOWN_WITHIN: Duration = Duration::from_secs(2);
/// How long changes are collected.
const PAUSE: Duration = Duration::from_millis(20);
/// Repeated changes by others within this time slow corrections down: two writers must not chase each other.
const CALM: Duration = Duration::from_secs(10);
/// Corrections within [`CALM`] before that.
const QUICK: usize = 10;

/// Kind and name.
type Name = (Box<str>, String);

/// What was written.
struct Written {
    /// The hash of the body: with authorities in each webhook, bodies would take kilobytes for each operator.
    body: Box<str>,
    version: Version,
    at: Instant,
    /// Whether the watch has shown this version or a newer one.
    seen: bool,
}

/// The result of a pass over all objects.
struct Passed {
    /// True if everything that points at the webhooks has the authorities.
    is_trusted: bool,
    /// What is not in place yet, and why.
    problems: Vec<String>,
}

/// The state of the keeper.
struct Keeper<'g> {
    gateway: &'g Gateway,
    cluster: Cluster,
    watches: Vec<Handle<Presence>>,
    /// The version of [`desired::optional_kinds`], if the API server has them.
    optional: Option<&'static str>,
    written: BTreeMap<Name, Written>,
    /// Definitions of earlier conversions, by name: the version that was looked up, and whether it keeps its conversion.
    looked: BTreeMap<String, (Version, Option<Kept>)>,
    corrections: Vec<Instant>,
}

/// Keeps all objects as they should be; never returns.
pub(super) async fn keep(gateway: &Gateway) {
    let touched = Arc::new(Notify::new());
    let cluster = gateway.context.cluster.clone();
    let optional = optional_version(&cluster).await;
    let mut keeper = Keeper::start(gateway, cluster, optional, &touched).await;
    let mut authorities = gateway.authorities.subscribe();
    let mut changed = gateway.changed.subscribe();
    let mut leadership = gateway.context.leadership.changed();
    let mut crds = gateway.context.crds.changed();
    let mut failures = 0;
    loop {
        let now = authorities.borrow_and_update().clone();
        changed.mark_unchanged();
        leadership.mark_unchanged();
        crds.mark_unchanged();
        let is_ready = gateway.context.leadership.leads() && *gateway.listed.borrow();
        let mut pause = Duration::MAX;
        if is_ready && !now.is_empty() {
            let catalogue = gateway.catalogue.load_full();
            pause = keeper.pass(&catalogue, &now, &mut failures).await;
        }
        let mut listed = gateway.listed.clone();
        let until_listed = async {
            if *listed.borrow_and_update() || listed.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            Ok(()) = authorities.changed() => {}
            Ok(()) = changed.changed() => {}
            Ok(()) = leadership.changed() => {}
            Ok(()) = crds.changed() => {}
            () = until_listed => {}
            () = touched.notified() => keeper.calm().await,
            () = sleep(pause) => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the version of [`desired::optional_kinds`], once the API server answers. An API server that has them later is noticed
/// when the process starts next.
async fn optional_version(cluster: &Cluster) -> Option<&'static str> {
    let mut failures = 0;
    loop {
        match desired::optional_version(cluster).await {
            Ok(version) => return version,
            Err(error) => {
                tracing::debug!(%error, "cannot look up the kinds of policies");
                tokio::time::sleep(RETRY.after(failures)).await;
                failures += 1;
            }
        }
    }
}

/// Removes what Katalogs want removed when the gateway stops.
pub(super) async fn end(gateway: &Gateway) {
    let authorities = gateway.authorities.borrow().clone();
    let catalogue = gateway.catalogue.load_full();
    let cleans = catalogue.katalogs.iter().any(|(_, plan)| {
        let security = &plan.security;
        security.cleanup
            || security.deletion.is_some_and(|deletion| deletion.cleanup)
            || (security.namespaces.as_ref()).is_some_and(|namespaces| namespaces.cleanup)
    });
    if !cleans || !*gateway.listed.borrow() {
        return;
    }
    let touched = Arc::new(Notify::new());
    let cluster = gateway.cluster.clone();
    // An API server that does not answer removes nothing either.
    let optional = desired::optional_version(&cluster)
        .await
        .unwrap_or_default();
    let mut keeper = Keeper::start(gateway, cluster, optional, &touched).await;
    let options = &gateway.options;
    let mut kept = desired::remaining(options, &catalogue, &authorities, optional);
    // A conversion is needed as long as objects are stored.
    kept.extend(definitions::declared(options, &catalogue, &authorities));
    match keeper.leaving(&kept, &authorities).await {
        Ok(leaving) => kept.extend(leaving),
        Err(error) => {
            tracing::warn!(error, "the webhook configurations remain");
            return;
        }
    }
    let mut problems = Vec::new();
    for desired in kept.iter().filter(|one| one.served != Served::crds()) {
        problems.extend(keeper.apply(desired).await.err());
    }
    keeper.remove_others(&kept, &mut problems).await;
    if !problems.is_empty() {
        tracing::warn!(
            problems = problems.join("; "),
            "some webhook configurations remain"
        );
    }
}

async fn sleep(pause: Duration) {
    if pause == Duration::MAX {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(pause).await;
}

/// Returns the watches of all objects with the label of the installation.
fn watches(
    gateway: &Gateway,
    optional: Option<&str>,
    touched: &Arc<Notify>,
) -> Vec<Handle<Presence>> {
    let optional = optional.into_iter().flat_map(desired::optional_kinds);
    let kinds = desired::kinds().into_iter().chain(optional);
    kinds
        .chain([Served::crds()])
        .map(|served| watch(gateway, served, touched))
        .collect()
}

/// Returns the watch of the objects of a kind with the label of the installation.
pub(super) fn watch(gateway: &Gateway, served: Served, touched: &Arc<Notify>) -> Handle<Presence> {
    let touched = Arc::clone(touched);
    let watched = Watched {
        served,
        scope: Scope {
            selector: Some(format!("{LABEL}={}", gateway.options.name)),
            ..Scope::default()
        },
    };
    let subscriber = Arc::new(move |_: &_| touched.notify_one());
    gateway.context.informers.presence(watched, subscriber)
}

impl<'g> Keeper<'g> {
    /// Starts the watches, and waits for their lists or failures; `touched` is notified of changes.
    async fn start(
        gateway: &'g Gateway,
        cluster: Cluster,
        optional: Option<&'static str>,
        touched: &Arc<Notify>,
    ) -> Self {
        let keeper = Self {
            gateway,
            cluster,
            watches: watches(gateway, optional, touched),
            optional,
            written: BTreeMap::new(),
            looked: BTreeMap::new(),
            corrections: Vec::new(),
        };
        for watch in &keeper.watches {
            watch.looked_at().await;
        }
        keeper
    }

    /// Runs a pass and logs what is not in place; `failures` counts such passes. Returns the time until the next one.
    async fn pass(
        &mut self,
        catalogue: &Catalogue,
        authorities: &str,
        failures: &mut u32,
    ) -> Duration {
        let passed = self.restore(catalogue, authorities).await;
        if passed.is_trusted {
            self.gateway.trust(authorities);
        }
        if passed.problems.is_empty() {
            *failures = 0;
            return self.look_again();
        }
        let problems = passed.problems.join("; ");
        tracing::warn!(
            problems,
            "not all webhooks, policies and conversions are in place"
        );
        let pause = RETRY.after(*failures);
        *failures += 1;
        pause
    }

    /// Applies what differs and removes what is not desired.
    async fn restore(&mut self, catalogue: &Catalogue, authorities: &str) -> Passed {
        let options = &self.gateway.options;
        let mut all = desired::desired(options, catalogue, authorities, self.optional);
        let definitions = definitions::declared(options, catalogue, authorities);
        all.extend(definitions.into_iter().filter(|one| {
            // A definition that is not installed yet has no objects to convert.
            self.gateway.context.crds.has(&one.name)
        }));
        // What cannot be read is not removed.
        match self.leaving(&all, authorities).await {
            Ok(leaving) => all.extend(leaving),
            Err(why) => {
                return Passed {
                    is_trusted: false,
                    problems: vec![why],
                };
            }
        }
        let (mut is_trusted, mut problems) = (true, Vec::new());
        let mut due: Vec<&Desired> = all.iter().collect();
        due.retain(|desired| !self.is_current(desired));
        let calling = due.iter().filter(|desired| desired.calls);
        let probes = Probes::of(calling.map(|desired| &desired.body)).await;
        for desired in due {
            if let Err(why) = self.write(desired, &probes, &mut problems).await {
                is_trusted &= !desired.calls;
                problems.push(why);
            }
        }
        self.remove_others(&all, &mut problems).await;
        self.written.retain(|(kind, name), _| {
            let mut all = all.iter();
            all.any(|one| *one.served.kind == **kind && one.name == *name)
        });
        // Several objects may point at one webhook.
        problems.sort();
        problems.dedup();
        Passed {
            is_trusted,
            problems,
        }
    }

    fn live(&self, desired: &Served, name: &str) -> Option<Arc<Presence>> {
        let watch = self
            .watches
            .iter()
            .find(|watch| watch.served() == desired)?;
        watch.store().get(&key(name))
    }

    /// True if the object is as it was written last, and that is still desired.
    fn is_current(&mut self, desired: &Desired) -> bool {
        let live = self.live(&desired.served, &desired.name);
        let is_blind = self.is_blind(&desired.served.kind);
        let name = (desired.served.kind.as_ref().into(), desired.name.clone());
        let Some(written) = self.written.get_mut(&name) else {
            return false;
        };
        if *written.body != *hash(&desired.body) {
            return false;
        }
        match live {
            // The watch is behind, or has shown the object and its deletion at once.
            None => !written.seen && (is_blind || written.at.elapsed() < SHOWN_WITHIN),
            Some(live) => {
                let version = &live.id.resource_version;
                if version.is_newer_than(&written.version) {
                    self.corrections.push(Instant::now());
                    return false;
                }
                written.seen |= !written.version.is_newer_than(version);
                true
            }
        }
    }

    /// Returns when to look again for what the watches have not shown yet.
    fn look_again(&self) -> Duration {
        let mut written = self.written.iter();
        if written.all(|((kind, _), written)| written.seen || self.is_blind(kind)) {
            Duration::MAX
        } else {
            SHOWN_WITHIN
        }
    }

    /// True if objects of a kind cannot be watched.
    fn is_blind(&self, kind: &str) -> bool {
        let mut watches = self.watches.iter();
        let watch = watches.find(|watch| *watch.served().kind == *kind);
        watch.is_none_or(|watch| watch.readable().is_err())
    }

    /// Removes objects of the installation that are not desired any more.
    async fn remove_others(&mut self, desired: &[Desired], problems: &mut Vec<String>) {
        let mut superfluous = Vec::new();
        for watch in &self.watches {
            if watch.readable().is_err() {
                continue;
            }
            let served = watch.served();
            for live in watch.store().snapshot() {
                let is_desired = (desired.iter())
                    .any(|one| one.served == *served && *one.name == *live.id.key.name);
                if !is_desired {
                    superfluous.push((served.clone(), live.id.key.name.to_string()));
                }
            }
        }
        for (served, name) in superfluous {
            match remove::release(&self.cluster, &served, &name).await {
                Ok(()) => {
                    self.written.remove(&(served.kind.as_ref().into(), name));
                }
                Err(error) => {
                    problems.push(format!("cannot remove {} {name}: {error}", served.kind));
                }
            }
        }
    }

    /// Waits a while if others change the same objects again and again.
    async fn calm(&mut self) {
        self.corrections.retain(|at| at.elapsed() < CALM);
        if self.corrections.len() > QUICK {
            tokio::time::sleep(CALM).await;
        }
    }
}
