//! Writes the configurations, policies and conversions, and restores them when others change them.
//!
//! ```text
//!  plans, authorities ──► desired ──► webhook answers? ──► applied (server-side apply) ──► trusted: the next certificate may serve
//!                                         ▲                        │
//!   watch: another client changed one ─────┴── removed: no longer desired
//! ```
//!
//! While it is not known of some Katalog what it declares, or what of it is in force, this only adds: what is missing from the
//! plans may be declared nevertheless.
//!
//! Nothing points at a webhook that does not answer. Each object is applied again when its resourceVersion is newer than that of
//! our last write: an apply that changes nothing keeps the version, so nothing loops.
//!
//! Without webhooks, this keeps the policies alone (`unserved`).

mod end;
mod leaving;
mod owner;
mod problems;
mod undecided;
mod unserved;
mod write;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use orkestra_cluster::{
    requests::{Cluster, RETRY, Scope, Served},
    watch::{Handle, Presence, Watched},
};
use orkestra_object::{decode::Version, value::hash};
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};

use self::{
    problems::{general, lacking, text},
    unserved::{Policies, has_policies, optional_version},
};
use super::{
    Gateway, MANAGER,
    catalogue::Catalogue,
    definitions::{self, Kept},
    desired::{self, Desired, LABEL, key},
    probe::{Permitted, Probes},
    remove,
};
use orkestra_operator::context::enforcement::NotEnforced;

pub(crate) use end::end;

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
    problems: Vec<NotEnforced>,
}

/// The state of the keeper.
struct Keeper<'g> {
    gateway: &'g Gateway,
    cluster: Cluster,
    watches: Vec<Handle<Presence>>,
    /// The version of [`desired::optional_kinds`], if the API server has them.
    optional: Option<&'static str>,
    written: BTreeMap<Name, Written>,
    /// The role that permits writing configurations. It owns them, so that the cluster deletes them with the permission.
    owner: Option<Value>,
    /// Definitions of earlier conversions, by name: the version that was looked up, and whether it keeps its conversion.
    looked: BTreeMap<String, (Version, Option<Kept>)>,
    corrections: Vec<Instant>,
    /// What is known of policies beside webhooks.
    policies: Policies,
    /// Notified of changes that watches show.
    touched: Arc<Notify>,
}

/// Keeps all objects as they should be; never returns.
pub(crate) async fn keep(gateway: &Gateway) {
    let touched = Arc::new(Notify::new());
    let cluster = gateway.context.cluster.clone();
    let mut keeper = if gateway.options.serves() {
        let has_policies = has_policies(&cluster).await;
        let optional = optional_version(&cluster).await;
        let mut keeper = Keeper::start(gateway, cluster, optional, &touched).await;
        keeper.policies.are_served = Some(has_policies);
        keeper
    } else {
        Keeper::new(gateway, cluster, &touched)
    };
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
        if is_ready && (!now.is_empty() || !gateway.options.serves()) {
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

/// True if an object is among those that are desired.
fn is_desired(all: &[Desired], (kind, name): &Name) -> bool {
    let mut all = all.iter();
    all.any(|one| *one.served.kind == **kind && one.name == *name)
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
pub(crate) fn watch(gateway: &Gateway, served: Served, touched: &Arc<Notify>) -> Handle<Presence> {
    let touched = Arc::clone(touched);
    let watched = Watched {
        served,
        scope: Scope {
            selector: Some(format!("{LABEL}={}", gateway.options.name)),
            ..Scope::default()
        },
    };
    let subscriber = Arc::new(move |_: &_| touched.notify_one());
    gateway
        .context
        .informers
        .shared(watched, &[], Some(subscriber))
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
            watches: watches(gateway, optional, touched),
            optional,
            ..Self::new(gateway, cluster, touched)
        };
        for watch in &keeper.watches {
            watch.looked_at().await;
        }
        keeper
    }

    /// A keeper without watches.
    fn new(gateway: &'g Gateway, cluster: Cluster, touched: &Arc<Notify>) -> Self {
        Self {
            gateway,
            cluster,
            watches: Vec::new(),
            optional: None,
            written: BTreeMap::new(),
            owner: None,
            looked: BTreeMap::new(),
            corrections: Vec::new(),
            policies: Policies::default(),
            touched: Arc::clone(touched),
        }
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
        self.gateway.context.enforcement.set(&passed.problems);
        if passed.problems.is_empty() {
            *failures = 0;
            return self.look_again();
        }
        tracing::warn!(
            problems = text(&passed.problems),
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
        if !options.serves() && self.follow_policies(catalogue, &all).await {
            all = desired::desired(options, catalogue, authorities, self.optional);
        }
        self.leave_out_unserved(&mut all, catalogue);
        if options.serves() {
            let definitions = definitions::declared(options, catalogue, authorities);
            all.extend(definitions.into_iter().filter(|one| {
                // A definition that is not installed yet has no objects to convert.
                self.gateway.context.crds.has(&one.name)
            }));
            // What cannot be read is not removed.
            if let Err(why) = self.add_kept(&mut all, catalogue, authorities).await {
                return Passed {
                    is_trusted: false,
                    problems: vec![general(why)],
                };
            }
        }
        let (mut is_trusted, mut problems) = (true, Vec::new());
        let mut due: Vec<&Desired> = all.iter().collect();
        due.retain(|desired| !self.is_current(desired));
        self.leave_out_ceded(&mut due).await;
        if !due.is_empty() && self.look_up_owner().await {
            self.written.clear();
            due = all.iter().collect();
            self.leave_out_ceded(&mut due).await;
        }
        let calling = due.iter().filter(|desired| desired.calls);
        let permitted = Permitted {
            own: options.own_url(),
            external: &self.gateway.context.external,
        };
        let probes = Probes::of(calling.map(|desired| &desired.body), permitted).await;
        for desired in due {
            if let Err(why) = self.write(desired, &probes, &mut problems).await {
                is_trusted &= !desired.calls;
                problems.push(lacking(desired, why));
            }
        }
        if catalogue.complete {
            self.remove_others(&all, &mut problems).await;
        }
        self.written.retain(|name, _| is_desired(&all, name));
        self.forget_policies(&all);
        // Several objects may point at one webhook.
        problems.sort_by_key(ToString::to_string);
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
            self.policies.look_again()
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
    async fn remove_others(&mut self, desired: &[Desired], problems: &mut Vec<NotEnforced>) {
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
            if !self.gateway.options.serves() && self.is_foreign(&served, &name).await {
                continue;
            }
            match remove::release(&self.cluster, &served, &name).await {
                Ok(()) => {
                    self.written.remove(&(served.kind.as_ref().into(), name));
                }
                Err(error) => {
                    let why = format!("cannot remove {} {name}: {error}", served.kind);
                    problems.push(general(why));
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
