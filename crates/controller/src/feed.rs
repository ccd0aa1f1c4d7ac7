//! Katalogs and Komposers of the cluster: one watch of each kind, and one task for each of them. Komposers are watched once
//! their CRD is there.
//!
//! Claims are registered for all Katalogs of the first list before anything runs, so that a restart decides them as before,
//! in any order of the list.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orkestra_ground::tasks::{self, Ends, Task};
use orkestra_language::api::names;
use orkestra_plan::{Declaring, GroupKind, KatalogRef};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    katalog::{ControllerContext, KatalogController, Latest},
    object::KatalogObject,
    watched::{ChangedObject, Namespaces, Watches, declaring, reference},
};
use orkestra_operator::context::Crds;

/// Follows the Katalogs of `namespaces` until `shutdown`; then waits until their tasks have ended.
pub(crate) async fn follow(
    shared: Arc<ControllerContext>,
    namespaces: &Namespaces,
    shutdown: CancellationToken,
) {
    let followed = FollowedKatalogs {
        shared,
        namespaces: namespaces.clone(),
        katalogs: BTreeMap::new(),
        tasks: TaskTracker::new(),
        starting: Vec::new(),
        shutdown: shutdown.clone(),
    };
    let feed = tasks::named(Task::Feed, "Katalogs");
    feed.kept(Ends::with(&shutdown), followed, |followed| {
        Box::pin(watch_all(followed))
    })
    .await;
}

/// Watches Katalogs until the shutdown, then waits for their tasks. The followed Katalogs outlive a failure of this task:
/// after a restart it lists again.
async fn watch_all(followed: &mut FollowedKatalogs) {
    let (mut watches, mut kinds) = (Watches::none(), Vec::new());
    let mut unlisted = BTreeSet::new();
    followed.watch(Declaring::Katalog, &mut watches, &mut kinds);
    let shutdown = followed.shutdown.clone();
    let mut crds = followed.shared.context.crds.changed();
    let mut states = Vec::new();
    loop {
        let komposers = Declaring::Komposer;
        if !kinds.contains(&komposers) && is_served(&followed.shared.context.crds, komposers) {
            followed.watch(komposers, &mut watches, &mut kinds);
        }
        if states.len() < kinds.len() {
            unlisted.extend(states.len()..kinds.len());
            states = watches.states();
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(change) = watches.changed.recv() => {
                // Changes before the list is complete are applied together with it.
                if !unlisted.contains(&change.watch) {
                    followed.look_at(&watches, &change, kinds[change.watch]);
                }
            }
            () = Watches::<KatalogObject>::changed(&mut states) => {}
            Ok(()) = crds.changed(), if !kinds.contains(&komposers) => continue,
            () = all_claimed(&mut followed.starting), if !followed.starting.is_empty() => {}
        }
        if let Some(why) = watches.new_problem_text() {
            tracing::warn!(error = why, "cannot watch Katalogs or Komposers");
        }
        let listed: Vec<usize> = unlisted
            .iter()
            .copied()
            .filter(|one| watches.was_synced(*one))
            .collect();
        for watch in listed {
            let all = watches.all(watch);
            if let Some((scope, _)) = watches.handles.get(watch) {
                followed.remove_unlisted((kinds[watch], scope.as_deref()), &all);
            }
            followed.apply(all);
            unlisted.remove(&watch);
        }
        if unlisted.is_empty() && followed.starting.is_empty() {
            followed
                .shared
                .synced
                .send_if_modified(|synced| !std::mem::replace(synced, true));
        }
    }
    followed.katalogs.clear();
    followed.tasks.close();
    followed.tasks.wait().await;
}

/// Returns once all Katalogs that were started have registered their claims.
async fn all_claimed(starting: &mut Vec<watch::Receiver<()>>) {
    while let Some(last) = starting.last_mut() {
        // It fails once the last of them has dropped its sender.
        while last.changed().await.is_ok() {}
        starting.pop();
    }
}

/// True if the CRD of one of our kinds is there and serves our version.
pub(crate) fn is_served(crds: &Crds, kind: Declaring) -> bool {
    let kind = GroupKind {
        group: names::GROUP.into(),
        kind: kind.kind().into(),
    };
    crds.get(&kind)
        .is_some_and(|crd| crd.serves(names::VERSION))
}

/// The followed Katalogs.
struct FollowedKatalogs {
    shared: Arc<ControllerContext>,
    namespaces: Namespaces,
    katalogs: BTreeMap<KatalogRef, FollowedKatalog>,
    tasks: TaskTracker,
    /// Those of which a Katalog has not registered its claims yet.
    starting: Vec<watch::Receiver<()>>,
    shutdown: CancellationToken,
}

struct FollowedKatalog {
    uid: Option<String>,
    objects: watch::Sender<Latest>,
    task: JoinHandle<()>,
}

impl FollowedKatalogs {
    /// Starts the watches of a kind, and adds it to `kinds` once for each.
    fn watch(
        &self,
        kind: Declaring,
        watches: &mut Watches<KatalogObject>,
        kinds: &mut Vec<Declaring>,
    ) {
        for scope in self.namespaces.scopes() {
            let informers = &self.shared.context.informers;
            watches.add(informers, &declaring(kind), scope, None);
            kinds.push(kind);
        }
    }

    /// Applies the current state of a Katalog or Komposer.
    fn look_at(
        &mut self,
        watches: &Watches<KatalogObject>,
        change: &ChangedObject,
        kind: Declaring,
    ) {
        match watches.get(change) {
            Some(written) if change.rewound => {
                let object = KatalogObject::clone(&written.content);
                self.apply(vec![Arc::new(KatalogObject {
                    rewound: true,
                    ..object
                })]);
            }
            Some(written) => self.apply(vec![written.content.clone()]),
            None => self.remove(&reference(&change.key).of(kind)),
        }
    }

    /// Removes Katalogs that were followed before this list of one or all namespaces and are not in it: they were deleted
    /// while the feed restarted.
    fn remove_unlisted(
        &mut self,
        (kind, namespace): (Declaring, Option<&str>),
        listed: &[Arc<KatalogObject>],
    ) {
        let listed: BTreeSet<KatalogRef> = listed.iter().map(|one| one.reference()).collect();
        let in_scope = |katalog: &KatalogRef| {
            katalog.kind == kind && namespace.is_none_or(|one| one == katalog.namespace)
        };
        let gone: Vec<KatalogRef> = (self.katalogs.keys())
            .filter(|katalog| in_scope(katalog) && !listed.contains(*katalog))
            .cloned()
            .collect();
        for katalog in &gone {
            self.remove(katalog);
        }
    }

    /// Applies states of Katalogs; all of them claim before any of them runs. Each is compiled in its own task.
    fn apply(&mut self, objects: Vec<Arc<KatalogObject>>) {
        let mut started = Vec::new();
        let (unclaimed, claimed) = watch::channel(());
        let unclaimed = Arc::new(unclaimed);
        for object in objects {
            let key = object.reference();
            self.shared.sources.katalogs.put(&key, &object);
            let known = self
                .katalogs
                .get(&key)
                .filter(|entry| entry.uid == object.metadata.uid && !entry.task.is_finished());
            if let Some(entry) = known {
                entry.objects.send_replace(Some(object));
                continue;
            }
            // A predecessor of the same name has to end first.
            let before = self.katalogs.remove(&key).inspect(|entry| {
                entry.objects.send_replace(None);
            });
            let katalog = before
                .is_none()
                .then(|| Box::new(KatalogController::new(&self.shared, &object)));
            started.push((key, object, before, katalog));
        }
        if !started.is_empty() {
            self.starting.push(claimed.clone());
        }
        for (key, object, before, katalog) in started {
            let (objects, latest) = watch::channel(Some(Arc::clone(&object)));
            let attended = ActiveKatalog {
                shared: Arc::clone(&self.shared),
                key: key.clone(),
                // One that waits for its predecessor delays no other one.
                unclaimed: before.is_none().then(|| Arc::clone(&unclaimed)),
                claimed: claimed.clone(),
                before: before.map(|before| before.task),
                first: katalog,
                objects: latest,
                shutdown: self.shutdown.clone(),
            };
            let ends = Ends::freely_or_with(&self.shutdown);
            let named = tasks::named(Task::Katalog, &key);
            let task = named.keep_on(&self.tasks, ends, attended, |attended| {
                Box::pin(attend(attended))
            });
            self.katalogs.insert(
                key,
                FollowedKatalog {
                    uid: object.metadata.uid.clone(),
                    objects,
                    task,
                },
            );
        }
    }

    fn remove(&mut self, katalog: &KatalogRef) {
        self.shared.sources.katalogs.remove(katalog);
        // The entry stays until the next one of its name: its task may still have kinds to release.
        if let Some(entry) = self.katalogs.get(katalog) {
            entry.objects.send_replace(None);
        }
        self.katalogs.retain(|_, entry| !entry.task.is_finished());
    }
}

/// A Katalog to run.
struct ActiveKatalog {
    shared: Arc<ControllerContext>,
    key: KatalogRef,
    /// The task of a predecessor of the same name.
    before: Option<JoinHandle<()>>,
    /// The Katalog to start with; created again after a failure.
    first: Option<Box<KatalogController>>,
    objects: watch::Receiver<Latest>,
    /// Dropped once its claims are registered.
    unclaimed: Option<Arc<watch::Sender<()>>>,
    /// Fails once those of all that were started with it are.
    claimed: watch::Receiver<()>,
    shutdown: CancellationToken,
}

/// Runs a Katalog until it is gone; after a restart it starts from its newest state.
async fn attend(attended: &mut ActiveKatalog) {
    if let Some(before) = &mut attended.before {
        // It must end first; its result does not matter.
        let _ = before.await;
        attended.before = None;
    }
    let katalog = attended.first.take().or_else(|| {
        let newest = attended.objects.borrow().clone()?;
        Some(Box::new(KatalogController::new(&attended.shared, &newest)))
    });
    let Some(mut katalog) = katalog else {
        attended.unclaimed = None;
        attended.shared.supervisor.forget(&attended.key);
        return;
    };
    let shutdown = attended.shutdown.clone();
    let first = async {
        Box::pin(katalog.claim_first()).await;
        attended.unclaimed = None;
        while attended.claimed.changed().await.is_ok() {}
    };
    tokio::select! {
        () = first => {}
        () = shutdown.cancelled() => return,
    }
    katalog.run(attended.objects.clone()).await;
}
