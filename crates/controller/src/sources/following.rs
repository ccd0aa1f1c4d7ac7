//! The task that follows the sources of one Komposer: it starts the fetches that are due, and publishes what is known.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use orkestra_compiler::compose::{Artifact, RequestKind};
use orkestra_plan::KatalogRef;
use tokio::{sync::watch, time::Instant};

use super::{
    super::watched::Watches,
    FetchError, FetchedSources, SourceContext, WantedSources,
    config_maps::{ConfigMap, ConfigMaps},
    fetching::{FinishedFetch, fetch},
    schedule::{FetchOutcome, RETRY, Schedule},
};
use orkestra_operator::metrics::FetchResult;

/// Follows the sources of one Komposer.
pub(crate) struct SourceFollower {
    context: Arc<SourceContext>,
    of: KatalogRef,
    wants: watch::Receiver<Arc<WantedSources>>,
    sender: watch::Sender<FetchedSources>,
    schedule: Schedule,
    config_maps: ConfigMaps,
}

impl SourceFollower {
    pub(crate) fn new(
        context: Arc<SourceContext>,
        of: KatalogRef,
        wants: watch::Receiver<Arc<WantedSources>>,
        sender: watch::Sender<FetchedSources>,
    ) -> Self {
        Self {
            context,
            of,
            wants,
            sender,
            schedule: Schedule::default(),
            config_maps: ConfigMaps::none(),
        }
    }

    /// Follows the sources until they are no longer wanted.
    pub(crate) async fn run(&mut self) {
        let mut fetching: FuturesUnordered<BoxFuture<'static, Option<FinishedFetch>>> =
            FuturesUnordered::new();
        let mut katalogs = self.context.katalogs.changed();
        self.schedule.resume(Instant::now());
        self.wants.mark_changed();
        let mut states = Vec::new();
        loop {
            if self.wants.has_changed().unwrap_or_default() {
                self.adopt();
                states = self.config_maps.watches.states();
                katalogs.mark_changed();
            }
            let now = Instant::now();
            for request in self.schedule.take_due(now) {
                let (context, of) = (Arc::clone(&self.context), self.of.clone());
                fetching.push(Box::pin(fetch(context, of, request)));
            }
            let far = now + RETRY.longest;
            let due = self.schedule.next().unwrap_or(far).min(far);
            tokio::select! {
                changed = self.wants.changed() => match changed {
                    Ok(()) => self.wants.mark_changed(),
                    Err(_) => return,
                },
                Some(done) = fetching.next() => {
                    // Nothing is fetched again by a process that is stopping.
                    if let Some(FinishedFetch { id, result, took }) = done {
                        self.note(&id, result, took);
                    }
                }
                Ok(()) = katalogs.changed() => self.look_at_katalogs(),
                Some(_) = self.config_maps.watches.changed.recv() => self.look_at_config_maps(),
                () = Watches::<ConfigMap>::changed(&mut states) => self.look_at_config_maps(),
                () = tokio::time::sleep_until(due) => {}
            }
        }
    }

    /// Takes the wanted sources.
    fn adopt(&mut self) {
        let wanted = Arc::clone(&self.wants.borrow_and_update());
        self.schedule.adopt(&wanted, Instant::now());
        let names: BTreeSet<&str> = (self.schedule.requests())
            .filter_map(|request| match &request.kind {
                RequestKind::ConfigMap { name, .. } => Some(&**name),
                _ => None,
            })
            .collect();
        let informers = &self.context.runtime.informers;
        self.config_maps.watch(names, &self.of.namespace, informers);
        self.publish();
    }

    fn look_at_config_maps(&mut self) {
        let mut results = Vec::new();
        for request in self.schedule.requests() {
            let RequestKind::ConfigMap { name, key } = &request.kind else {
                continue;
            };
            let found = (self.config_maps).find(name, key.as_deref(), &self.of.namespace);
            results.extend(found.map(|found| (request.id.clone(), found)));
        }
        for (id, result) in results {
            self.note(&id, result.map(Arc::new), None);
        }
    }

    fn look_at_katalogs(&mut self) {
        let mut results = Vec::new();
        for request in self.schedule.requests() {
            if let RequestKind::Katalogs { name, selector } = &request.kind {
                let katalogs = &self.context.katalogs;
                let found =
                    katalogs.artifact(&self.of.namespace, name.as_deref(), selector.as_ref());
                results.push((request.id.clone(), found));
            }
        }
        for (id, result) in results {
            self.note(&id, result.map(Arc::new), None);
        }
    }

    /// Records the result of a fetch.
    fn note(
        &mut self,
        id: &str,
        result: Result<Arc<Artifact>, FetchError>,
        took: Option<Duration>,
    ) {
        let at = (Instant::now(), &self.context.runtime.entropy);
        let Some(outcome) = self.schedule.note(id, result, at) else {
            return;
        };
        let counted = match &outcome {
            FetchOutcome::Unchanged => FetchResult::Unchanged,
            FetchOutcome::Changed(artifact) => {
                tracing::info!(komposer = %self.of, source = id, revision = artifact.revision, digest = artifact.digest, "source has a new revision");
                FetchResult::Changed(artifact)
            }
            FetchOutcome::Failed { error, is_new } => {
                if *is_new {
                    tracing::warn!(komposer = %self.of, source = id, error = %error, "cannot fetch a source");
                }
                FetchResult::Failed
            }
        };
        if let Some(request) = self.schedule.request(id) {
            let metrics = &self.context.runtime.metrics;
            metrics.fetched(&request.kind, counted, took);
        }
        self.publish();
    }

    fn publish(&self) {
        let known = self.schedule.known();
        self.sender.send_if_modified(|before| {
            let differs = **before != known;
            if differs {
                *before = Arc::new(known);
            }
            differs
        });
    }
}
