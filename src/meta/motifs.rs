//! Motifs of the cluster: one watch, what Katalogs import by name.
//!
//! A change wakes every Katalog; those that import the Motif, however far down, are compiled anew.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures::StreamExt;
use kube::{api::DynamicObject, runtime::watcher::Event};
use orkestra_core::plan::KatalogRef;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    feed::{Namespaces, Scope, watched},
    katalog::{Shared, reference},
};
use crate::runtime::wire::chain;

/// The Motifs that are known.
#[derive(Debug)]
pub(crate) struct Motifs {
    known: Mutex<Known>,
    /// Counts what was taken in.
    changed: watch::Sender<u64>,
    /// Whether they were listed, or cannot be.
    listed: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Known {
    motifs: BTreeMap<KatalogRef, Arc<Value>>,
    /// Why they cannot be watched at the moment.
    trouble: Option<String>,
}

impl Motifs {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self {
            known: Mutex::default(),
            changed: watch::channel(0).0,
            listed: watch::channel(false).0,
        }
    }

    /// The Motif `name` of a namespace.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Result<Arc<Value>, String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = KatalogRef {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        if let Some(motif) = known.motifs.get(&key) {
            return Ok(Arc::clone(motif));
        }
        Err(match &known.trouble {
            None => format!("there is no Motif `{name}` in namespace {namespace}"),
            Some(why) => format!("Motif `{name}` is not known: Motifs cannot be watched: {why}"),
        })
    }

    /// Wakes when a Motif comes, changes or goes.
    pub(crate) fn changed(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Ends once they were listed, or cannot be.
    pub(crate) async fn listed(&self) {
        // The sender lives as long as this.
        let _ = self.listed.subscribe().wait_for(|listed| *listed).await;
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.send_modify(|count| *count += 1);
    }
}

/// Follows the Motifs of `namespaces` until `shutdown`.
pub(crate) async fn follow(
    shared: Arc<Shared>,
    namespaces: &Namespaces,
    shutdown: CancellationToken,
) {
    let mut events = watched(&shared, namespaces, ("Motif", "motifs"));
    let mut lists: BTreeMap<Scope, Vec<DynamicObject>> = BTreeMap::new();
    let motifs = &shared.motifs;
    loop {
        let (scope, event) = tokio::select! {
            () = shutdown.cancelled() => break,
            Some(event) = events.next() => event,
        };
        match event {
            Err(error) => {
                let why = chain(&error);
                motifs.change(|known| {
                    if known.trouble.as_ref() != Some(&why) {
                        tracing::warn!(error = why, "Motifs cannot be watched");
                        known.trouble = Some(why);
                    }
                });
                motifs.listed.send_replace(true);
            }
            Ok(Event::Init) => drop(lists.insert(scope, Vec::new())),
            Ok(Event::InitApply(object)) => lists.entry(scope).or_default().push(object),
            Ok(Event::InitDone) => {
                let listed = lists.remove(&scope).unwrap_or_default();
                motifs.change(|known| known.replace(&scope, &listed));
                motifs.listed.send_replace(lists.is_empty());
            }
            Ok(Event::Apply(object)) => motifs.change(|known| known.put(&object)),
            Ok(Event::Delete(object)) => {
                motifs.change(|known| drop(known.motifs.remove(&reference(&object.metadata))));
            }
        }
    }
}

impl Known {
    /// Takes in a whole list of a scope.
    fn replace(&mut self, scope: &Scope, listed: &[DynamicObject]) {
        let elsewhere = |key: &KatalogRef| {
            scope
                .as_ref()
                .is_some_and(|namespace| *namespace != key.namespace)
        };
        self.motifs.retain(|key, _| elsewhere(key));
        self.trouble = None;
        for object in listed {
            self.put(object);
        }
    }

    fn put(&mut self, object: &DynamicObject) {
        let document = serde_json::to_value(object).unwrap_or_default();
        self.motifs
            .insert(reference(&object.metadata), Arc::new(document));
    }
}
