//! Katalogs of the cluster: one watch, a task for each.
//!
//! Claims are registered for all Katalogs of the first list before anything runs, so that a restart decides them as
//! before, whatever order the list has.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    stream::{BoxStream, SelectAll},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
    runtime::{
        WatchStreamExt,
        utils::Backoff,
        watcher::{self, Event, watcher},
    },
};
use orkestra_core::{api::names, plan::KatalogRef};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::katalog::{Katalog, KatalogObject, Latest, Shared, reference};
use crate::runtime::{entropy::Entropy, wire::chain};

/// How long a Katalog whose task panicked rests.
const REST: Duration = Duration::from_secs(10);
/// Longest wait before a watch that failed is opened again.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Which Katalogs are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// Those of all namespaces.
    All,
    /// Those of these.
    Some(Vec<String>),
}

/// Follows the Katalogs of `namespaces` until `shutdown`; then waits until their tasks have ended.
pub(crate) async fn follow(
    shared: Arc<Shared>,
    namespaces: &Namespaces,
    shutdown: CancellationToken,
) {
    let mut events = watched(&shared, namespaces, ("Katalog", "katalogs"));
    let mut followed = Followed {
        shared,
        katalogs: BTreeMap::new(),
        tasks: TaskTracker::new(),
    };
    let mut unlisted: BTreeSet<Scope> = scopes(namespaces).into_iter().collect();
    let mut lists: BTreeMap<Scope, Vec<KatalogObject>> = BTreeMap::new();
    let mut shutdown = pin!(shutdown.cancelled_owned());
    loop {
        let (scope, event) = tokio::select! {
            () = &mut shutdown => break,
            Some(event) = events.next() => event,
        };
        match event {
            Err(error) => {
                tracing::warn!(error = %chain(&error), "Katalogs cannot be watched");
            }
            Ok(Event::Init) => drop(lists.insert(scope, Vec::new())),
            Ok(Event::InitApply(object)) => {
                let listed = lists.entry(scope).or_default();
                listed.push(KatalogObject::new(object));
            }
            Ok(Event::InitDone) => {
                followed.replace(&scope, lists.remove(&scope).unwrap_or_default());
                unlisted.remove(&scope);
                if unlisted.is_empty() {
                    followed.shared.synced.send_replace(true);
                }
            }
            Ok(Event::Apply(object)) => followed.apply(vec![KatalogObject::new(object)]),
            Ok(Event::Delete(object)) => followed.remove(&reference(&object.metadata)),
        }
    }
    followed.katalogs.clear();
    followed.tasks.close();
    followed.tasks.wait().await;
}

/// A namespace; none is all of them.
pub(crate) type Scope = Option<String>;

/// Events of a watch, with the scope that is watched.
type Events = SelectAll<BoxStream<'static, (Scope, watcher::Result<Event<DynamicObject>>)>>;

/// Watches objects of a kind of ours, which has that kind and plural, in all of `namespaces`.
pub(crate) fn watched(
    shared: &Shared,
    namespaces: &Namespaces,
    (kind, plural): (&str, &str),
) -> Events {
    let mut events = SelectAll::new();
    for scope in scopes(namespaces) {
        let api = api(
            shared.context.wire.client(),
            scope.as_deref(),
            (kind, plural),
        );
        let backoff = Doubling {
            entropy: shared.context.entropy.clone(),
            failures: 0,
        };
        let reach = shared.context.wire.reach().clone();
        // What ends while the API server is away is tried again once it is back.
        let patient = watcher(api, watcher::Config::default()).then(move |event| {
            let reach = reach.clone();
            async move {
                if event.is_err() {
                    reach.up().await;
                }
                event
            }
        });
        let stream = patient.boxed().backoff(backoff);
        events.push(stream.map(move |event| (scope.clone(), event)).boxed());
    }
    events
}

fn scopes(namespaces: &Namespaces) -> Vec<Scope> {
    match namespaces {
        Namespaces::All => vec![None],
        Namespaces::Some(namespaces) => namespaces.iter().cloned().map(Some).collect(),
    }
}

fn api(
    client: &Client,
    namespace: Option<&str>,
    (kind, plural): (&str, &str),
) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk(names::GROUP, names::VERSION, kind),
        plural,
    );
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    }
}

/// The Katalogs that are followed.
struct Followed {
    shared: Arc<Shared>,
    katalogs: BTreeMap<KatalogRef, Entry>,
    tasks: TaskTracker,
}

struct Entry {
    uid: Option<String>,
    objects: watch::Sender<Latest>,
    task: JoinHandle<()>,
}

impl Followed {
    /// Takes in a whole list of a scope.
    fn replace(&mut self, scope: &Scope, objects: Vec<KatalogObject>) {
        let listed: Vec<_> = objects.iter().map(KatalogObject::reference).collect();
        let in_scope = |katalog: &KatalogRef| {
            scope
                .as_ref()
                .is_none_or(|namespace| *namespace == katalog.namespace)
        };
        let gone: Vec<_> = self
            .katalogs
            .keys()
            .filter(|katalog| in_scope(katalog) && !listed.contains(katalog))
            .cloned()
            .collect();
        for katalog in &gone {
            self.remove(katalog);
        }
        self.apply(objects);
    }

    /// Takes in states of Katalogs; all of them claim before any of them runs.
    fn apply(&mut self, objects: Vec<KatalogObject>) {
        let mut started = Vec::new();
        for object in objects {
            let key = object.reference();
            let object = Arc::new(object);
            let known = self
                .katalogs
                .get(&key)
                .filter(|entry| entry.uid == object.metadata.uid && !entry.task.is_finished());
            if let Some(entry) = known {
                entry.objects.send_replace(Some(object));
                continue;
            }
            // One of the same name that was there before has to end first.
            let before = self.katalogs.remove(&key).inspect(|entry| {
                entry.objects.send_replace(None);
            });
            let katalog = before
                .is_none()
                .then(|| Katalog::new(&self.shared, &object));
            started.push((key, object, before, katalog));
        }
        for (key, object, before, katalog) in started {
            let (objects, latest) = watch::channel(Some(Arc::clone(&object)));
            let shared = Arc::clone(&self.shared);
            let task = self.tasks.spawn(async move {
                if let Some(before) = before {
                    let _ = before.task.await;
                }
                attend(&shared, katalog, latest).await;
            });
            self.katalogs.insert(
                key,
                Entry {
                    uid: object.metadata.uid.clone(),
                    objects,
                    task,
                },
            );
        }
    }

    fn remove(&mut self, katalog: &KatalogRef) {
        // The entry stays until another of its name comes: its task may have something to release.
        if let Some(entry) = self.katalogs.get(katalog) {
            entry.objects.send_replace(None);
        }
        self.katalogs.retain(|_, entry| !entry.task.is_finished());
    }
}

/// Runs a Katalog; one whose task panics rests, and begins anew.
async fn attend(shared: &Arc<Shared>, first: Option<Katalog>, objects: watch::Receiver<Latest>) {
    let mut katalog = first;
    loop {
        let next = katalog
            .take()
            .or_else(|| Some(Katalog::new(shared, &objects.borrow().clone()?)));
        let Some(next) = next else {
            return;
        };
        if AssertUnwindSafe(next.run(objects.clone()))
            .catch_unwind()
            .await
            .is_ok()
        {
            return;
        }
        tracing::error!("the task of a Katalog panicked");
        tokio::time::sleep(REST).await;
        if objects.has_changed().is_err() {
            return;
        }
    }
}

/// Waits that double with each failure, with jitter.
struct Doubling {
    entropy: Entropy,
    failures: u32,
}

impl Iterator for Doubling {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let wait = Duration::from_millis(500)
            .saturating_mul(2_u32.saturating_pow(self.failures))
            .min(LONGEST_WAIT);
        self.failures = self.failures.saturating_add(1);
        Some(self.entropy.shorten(wait, 0.2))
    }
}

impl Backoff for Doubling {
    fn reset(&mut self) {
        self.failures = 0;
    }
}
