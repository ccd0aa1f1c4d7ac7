//! Writes the configurations, policies and conversions, and restores them when others change them.
//!
//! ```text
//!  plans, authorities ──► wanted ──► webhook answers? ──► applied (server-side apply) ──► trusted: the next certificate may serve
//!                                         ▲                        │
//!   watch: somebody changed one ──────────┴── removed: no longer wanted
//! ```
//!
//! Nothing points at a webhook that does not answer. Each object is applied again when its resourceVersion is newer than that of
//! our last write: an apply that changes nothing keeps the version, so nothing loops.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use orkestra_cluster::{
    watch::{Handle, Presence, Watched},
    wire::{Deletion, Propagation, Scope, Served, Wire, WireError},
};
use orkestra_core::{decode::Version, plan::ObjectKey, value::Node};
use orkestra_ground::Backoff;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{
    Gateway, MANAGER, Options,
    catalogue::Catalogue,
    probe,
    wanted::{self, LABEL, Wanted},
};

/// The delays after a failed request.
const RETRY: Backoff = Backoff::doubling(Duration::from_millis(500), Duration::from_secs(30));
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
    body: Node,
    version: Version,
    /// Whether the watch has shown this version or a newer one.
    seen: bool,
}

/// The state of the keeper.
struct Keeper<'g> {
    gateway: &'g Gateway,
    wire: Wire,
    watches: Vec<Handle<Presence>>,
    written: BTreeMap<Name, Written>,
    corrections: Vec<tokio::time::Instant>,
}

/// Keeps all objects as they should be; never returns.
pub(super) async fn keep(gateway: &Gateway) {
    let touched = Arc::new(Notify::new());
    let mut keeper = Keeper {
        gateway,
        wire: gateway.context.wire.clone(),
        watches: watches(gateway, &touched),
        written: BTreeMap::new(),
        corrections: Vec::new(),
    };
    for watch in &keeper.watches {
        watch.looked_at().await;
    }
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
            if let Err(error) = keeper.pass(&catalogue, &now).await {
                tracing::warn!(error, "cannot write the configurations of webhooks");
                pause = RETRY.after(failures);
                failures += 1;
            } else {
                failures = 0;
                gateway.trust(&now);
            }
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
    let mut keeper = Keeper {
        gateway,
        wire: gateway.wire.clone(),
        watches: watches(gateway, &touched),
        written: BTreeMap::new(),
        corrections: Vec::new(),
    };
    for watch in &keeper.watches {
        watch.looked_at().await;
    }
    let options = &gateway.options;
    let mut kept = wanted::remaining(options, &catalogue, &authorities);
    // A conversion is needed as long as objects are stored.
    kept.extend(conversions(options, &catalogue, &authorities));
    let mut problems = Vec::new();
    for wanted in kept.iter().filter(|one| one.served != Served::crds()) {
        problems.extend(keeper.apply(wanted).await.err());
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
fn watches(gateway: &Gateway, touched: &Arc<Notify>) -> Vec<Handle<Presence>> {
    let selector = format!("{LABEL}={}", gateway.options.name);
    let kinds = wanted::kinds().into_iter().chain([Served::crds()]);
    let watch = |served| {
        let touched = Arc::clone(touched);
        let watched = Watched {
            served,
            scope: Scope {
                selector: Some(selector.clone()),
                ..Scope::default()
            },
        };
        let subscriber = Arc::new(move |_: &_| touched.notify_one());
        gateway.context.informers.presence(watched, subscriber)
    };
    kinds.map(watch).collect()
}

/// Returns the definitions whose conversion the gateway serves, with the body to apply.
fn conversions(options: &Options, catalogue: &Catalogue, authorities: &str) -> Vec<Wanted> {
    let own = catalogue.conversions().filter(|one| one.plan.update_crd);
    let wanted = own.map(|conversion| {
        let security = &conversion.security;
        let config = wanted::client_config(
            options,
            security.service_name.as_deref(),
            security.gateway_endpoint.as_deref(),
            "/convert",
            authorities,
        );
        let name = conversion.plan.definition();
        let body = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": name, "labels": { LABEL: options.name } },
            "spec": { "conversion": {
                "strategy": "Webhook",
                "webhook": { "conversionReviewVersions": ["v1"], "clientConfig": config },
            } },
        });
        Wanted {
            served: Served::crds(),
            name,
            body: Node::from(&body),
            calls: true,
        }
    });
    wanted.collect()
}

impl Keeper<'_> {
    /// Applies what differs and removes what is not wanted.
    async fn pass(&mut self, catalogue: &Catalogue, authorities: &str) -> Result<(), String> {
        let options = &self.gateway.options;
        let mut all = wanted::wanted(options, catalogue, authorities);
        let definitions = conversions(options, catalogue, authorities);
        all.extend(definitions.into_iter().filter(|one| {
            // A definition that is not installed yet has no objects to convert.
            self.gateway.context.crds.has(&one.name)
        }));
        let mut problems = Vec::new();
        let mut answers: BTreeMap<String, bool> = BTreeMap::new();
        for wanted in &all {
            if self.is_current(wanted) {
                continue;
            }
            if wanted.calls && !answering(wanted, &mut answers, &mut problems).await {
                continue;
            }
            if let Err(why) = self.apply(wanted).await {
                problems.push(why);
            }
        }
        self.remove_others(&all, &mut problems).await;
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems.join("; "))
        }
    }

    fn live(&self, wanted: &Served, name: &str) -> Option<Arc<Presence>> {
        let watch = self.watches.iter().find(|watch| watch.served() == wanted)?;
        watch.store().get(&key(name))
    }

    /// True if the object is as it was written last, and that is still wanted.
    fn is_current(&mut self, wanted: &Wanted) -> bool {
        let live = self.live(&wanted.served, &wanted.name);
        let name = (wanted.served.kind.as_ref().into(), wanted.name.clone());
        let Some(written) = self.written.get_mut(&name) else {
            return false;
        };
        if written.body != wanted.body {
            return false;
        }
        match live {
            None => !written.seen,
            Some(live) => {
                let version = &live.id.resource_version;
                if version.is_newer_than(&written.version) {
                    self.corrections.push(tokio::time::Instant::now());
                    return false;
                }
                written.seen |= !written.version.is_newer_than(version);
                true
            }
        }
    }

    async fn apply(&mut self, wanted: &Wanted) -> Result<(), String> {
        let (served, key) = (&wanted.served, key(&wanted.name));
        let applied = self.wire.apply(served, &key, MANAGER, true, &wanted.body);
        let applied = applied
            .await
            .map_err(|error| format!("cannot apply {} {}: {error}", served.kind, wanted.name))?;
        let version = applied
            .get("metadata")
            .and_then(|one| one.get("resourceVersion"));
        let version = Version::from(version.and_then(Node::as_str).unwrap_or_default());
        let name = (served.kind.as_ref().into(), wanted.name.clone());
        let written = Written {
            body: wanted.body.clone(),
            version,
            seen: false,
        };
        self.written.insert(name, written);
        tracing::debug!(kind = &*served.kind, name = wanted.name, "applied");
        Ok(())
    }

    /// Removes objects of the installation that are not wanted any more.
    async fn remove_others(&mut self, wanted: &[Wanted], problems: &mut Vec<String>) {
        let mut superfluous = Vec::new();
        for watch in &self.watches {
            if watch.readable().is_err() {
                continue;
            }
            let served = watch.served();
            for live in watch.store().snapshot() {
                let is_wanted = (wanted.iter())
                    .any(|one| one.served == *served && *one.name == *live.id.key.name);
                if !is_wanted {
                    superfluous.push((served.clone(), live.id.key.name.to_string()));
                }
            }
        }
        for (served, name) in superfluous {
            match release(&self.wire, &served, &name).await {
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

/// True if the webhook that an object points at answers; asked once for each address.
async fn answering(
    wanted: &Wanted,
    answers: &mut BTreeMap<String, bool>,
    problems: &mut Vec<String>,
) -> bool {
    let body = wanted.body.to_json();
    let mut configs = Vec::new();
    for webhook in body["webhooks"].as_array().into_iter().flatten() {
        configs.push(webhook["clientConfig"].clone());
    }
    if let Some(config) = body.pointer("/spec/conversion/webhook/clientConfig") {
        configs.push(config.clone());
    }
    let mut all = true;
    for mut config in configs {
        if let Some(url) = config.get("url").and_then(Value::as_str) {
            let origin = url.rsplit_once('/').map_or(url, |(origin, _)| origin);
            config["url"] = origin.to_owned().into();
        }
        if let Some(service) = config.get_mut("service").and_then(Value::as_object_mut) {
            service.remove("path");
        }
        let asked = config.to_string();
        let known = answers.get(&asked).copied();
        let answer = match known {
            Some(answer) => answer,
            None => match probe::probe(&config).await {
                Ok(()) => true,
                Err(error) => {
                    problems.push(format!("the webhook does not answer: {error}"));
                    false
                }
            },
        };
        answers.insert(asked, answer);
        all &= answer;
    }
    all
}

fn key(name: &str) -> ObjectKey {
    ObjectKey {
        namespace: None,
        name: name.into(),
    }
}

/// Removes an object that belongs to a gateway; a definition stays, and loses its conversion.
pub(super) async fn release(wire: &Wire, served: &Served, name: &str) -> Result<(), WireError> {
    let released = if *served == Served::crds() {
        // What only this field manager owns is removed with the apply that does not have it.
        let body = json!({
            "apiVersion": served.api_version(), "kind": &*served.kind, "metadata": { "name": name },
        });
        let (key, body) = (key(name), Node::from(&body));
        wire.apply(served, &key, MANAGER, true, &body)
            .await
            .map(drop)
    } else {
        let how = Deletion {
            propagation: Propagation::Background,
            uid: None,
            resource_version: None,
        };
        wire.delete(served, &key(name), &how).await.map(drop)
    };
    match released {
        Err(WireError::NotFound(_) | WireError::NotServed(_)) => Ok(()),
        other => other,
    }
}
