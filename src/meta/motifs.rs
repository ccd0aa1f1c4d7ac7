//! Motifs of the cluster, which Katalogs import by name: one watch.
//!
//! A change wakes every Katalog; those that import the Motif, directly or not, are compiled again.

use std::{collections::BTreeMap, sync::Arc};

use kube::api::DynamicObject;
use orkestra_core::plan::KatalogRef;
use orkestra_ground::tasks::{self, Ends, Task};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::watched::{Namespaces, ReadObject, WatchedContent, Watches, own_kind, reference};
use crate::runtime::context::Context;

/// The known Motifs.
#[derive(Debug)]
pub(crate) struct Motifs {
    known: Mutex<KnownMotif>,
    /// Counts changes.
    changed: watch::Sender<u64>,
    /// Whether they were listed, or cannot be listed.
    listed: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct KnownMotif {
    /// Each Motif, or its unreadable parts.
    motifs: BTreeMap<KatalogRef, Result<Arc<Value>, String>>,
    /// Why they cannot be watched at the moment.
    problem: Option<String>,
}

impl Motifs {
    /// Creates an empty set.
    pub(crate) fn new() -> Self {
        Self {
            known: Mutex::default(),
            changed: watch::channel(0).0,
            listed: watch::channel(false).0,
        }
    }

    /// Returns the Motif `name` of a namespace.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Result<Arc<Value>, String> {
        let known = self.known.lock();
        let key = KatalogRef::new(namespace.to_owned(), name.to_owned());
        match known.motifs.get(&key) {
            Some(Ok(motif)) => return Ok(Arc::clone(motif)),
            Some(Err(why)) => return Err(format!("Motif `{name}` cannot be read: {why}")),
            None => {}
        }
        Err(match &known.problem {
            None => format!("there is no Motif `{name}` in namespace {namespace}"),
            Some(why) => format!("Motif `{name}` is not known: Motifs cannot be watched: {why}"),
        })
    }

    /// A receiver that changes when a Motif is added, changed or deleted.
    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns once they were listed, or cannot be listed.
    pub(crate) async fn listed(&self) {
        // The sender lives as long as `self`.
        let _ = self.listed.subscribe().wait_for(|listed| *listed).await;
    }

    fn change(&self, change: impl FnOnce(&mut KnownMotif)) {
        change(&mut self.known.lock());
        self.changed.send_modify(|count| *count += 1);
    }
}

/// Follows the Motifs of `namespaces` with `motifs` until `shutdown`.
pub(crate) async fn follow(
    motifs: Arc<Motifs>,
    context: Arc<Context>,
    namespaces: &Namespaces,
    shutdown: CancellationToken,
) {
    let ends = Ends::with(&shutdown);
    let state = (motifs, context, namespaces.clone(), shutdown);
    let named = tasks::named(Task::Motifs, "Motifs");
    named
        .kept(ends, state, |(motifs, context, namespaces, shutdown)| {
            Box::pin(watch_all(motifs, context, namespaces, shutdown))
        })
        .await;
}

/// Watches Motifs until the shutdown; after a restart it lists again.
async fn watch_all(
    motifs: &Motifs,
    context: &Context,
    namespaces: &Namespaces,
    shutdown: &CancellationToken,
) {
    let mut watches: Watches<Motif> = Watches::start(
        &context.informers,
        &own_kind("Motif", "motifs"),
        namespaces.scopes(),
    );
    let mut states = watches.states();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(change) = watches.changed.recv() => {
                let key = reference(&change.key);
                let motif = watches.get(&change);
                motifs.change(|known| known.put(key, motif.as_deref()));
                continue;
            }
            () = Watches::<Motif>::changed(&mut states) => {}
        }
        let problem = watches.problem();
        if let Some(why) = watches.new_problem_text() {
            tracing::warn!(error = why, "cannot watch Motifs");
        }
        let count = states.len();
        let is_listed = (0..count).all(|watch| watches.was_synced(watch));
        // Changes from the lists are queued before the state that marks them complete.
        while let Ok(change) = watches.changed.try_recv() {
            let (key, motif) = (reference(&change.key), watches.get(&change));
            motifs.change(|known| known.put(key, motif.as_deref()));
        }
        motifs.change(|known| known.problem.clone_from(&problem));
        if is_listed || problem.is_some() {
            motifs.listed.send_replace(true);
        }
    }
}

/// A Motif's document.
pub(crate) struct Motif(pub(super) Arc<Value>);

impl WatchedContent for Motif {
    fn new(object: DynamicObject) -> Self {
        Self(Arc::new(serde_json::to_value(object).unwrap_or_default()))
    }
}

impl KnownMotif {
    fn put(&mut self, key: KatalogRef, motif: Option<&ReadObject<Motif>>) {
        match motif {
            None => drop(self.motifs.remove(&key)),
            Some(motif) => {
                let document = match &motif.unread {
                    None => Ok(Arc::clone(&motif.content.0)),
                    Some(fault) => Err(fault.to_string()),
                };
                self.motifs.insert(key, document);
            }
        }
    }
}
