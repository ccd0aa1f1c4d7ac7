//! The plans of a cluster's Katalogs and Komposers, for a process that runs no operators: compiled from the same watches.
//!
//! ```text
//!  Katalogs, Motifs ── watched ──► compiled: the newest that compiles, else the last accepted revision ──► Directory
//! ```
//!
//! It needs no leader and no records of custom resources.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use orkestra_cluster::watch::Informers;
use orkestra_core::{
    api::KatalogStatus,
    compose::{Artifacts, SourceRecord},
    plan::{Declaring, GroupKind, KatalogRef, Plan, Revised},
};
use orkestra_ground::tasks::{self, Ends, Task};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    directory::{KatalogView, OperatorView, Publisher, Readiness, SourceView},
    feed::is_served,
    katalog::{
        RunnableRevision, artifacts, judge,
        used_motifs::Composed,
        used_motifs::{self},
    },
    known::{kinds_named, known, whole_schemas},
    motifs::Motif,
    object::KatalogObject,
    revisions::Revisions,
    watched::{Namespaces, Watches, declaring, own_kind},
};
use crate::runtime::{OperatorStatus, context::Context};

/// How long changes are collected before Katalogs are compiled again.
const PAUSE: Duration = Duration::from_millis(50);

/// A compiled Katalog.
struct Compiled {
    plan: Arc<Plan>,
    /// The sources that it is composed from.
    sources: Vec<SourceRecord>,
    revision: String,
    object: Arc<KatalogObject>,
}

/// Compiles the Katalogs of `namespaces` and publishes their plans until `shutdown`. `listed` turns true once all Katalogs
/// that existed at the start are compiled.
pub(crate) async fn follow_plans(
    context: Arc<Context>,
    namespaces: Namespaces,
    publisher: Publisher,
    listed: watch::Sender<bool>,
    shutdown: CancellationToken,
) {
    let state = (context, namespaces, publisher, listed, shutdown.clone());
    tasks::named(Task::Plans, "")
        .kept(Ends::with(&shutdown), state, |state| {
            let (context, namespaces, publisher, listed, shutdown) = state;
            Box::pin(follow(context, namespaces, publisher, listed, shutdown))
        })
        .await;
}

async fn follow(
    context: &Context,
    namespaces: &Namespaces,
    publisher: &Publisher,
    listed: &watch::Sender<bool>,
    shutdown: &CancellationToken,
) {
    let informers = &context.informers;
    let mut katalogs: Watches<KatalogObject> = Watches::none();
    watch_all(Declaring::Katalog, informers, namespaces, &mut katalogs);
    let mut motifs: Watches<Motif> =
        Watches::start(informers, &own_kind("Motif", "motifs"), namespaces.scopes());
    let mut states = katalogs.states();
    let mut others = motifs.states();
    let mut crds = context.crds.changed();
    let mut earlier = BTreeSet::new();
    let mut has_komposers = false;
    loop {
        if !has_komposers && is_served(&context.crds, Declaring::Komposer) {
            watch_all(Declaring::Komposer, informers, namespaces, &mut katalogs);
            states = katalogs.states();
            has_komposers = true;
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            Some(_) = katalogs.changed.recv() => {}
            Some(_) = motifs.changed.recv() => {}
            Ok(()) = crds.changed() => {}
            () = Watches::<KatalogObject>::changed(&mut states) => {}
            () = Watches::<Motif>::changed(&mut others) => {}
        }
        tokio::time::sleep(PAUSE).await;
        while katalogs.changed.try_recv().is_ok() {}
        while motifs.changed.try_recv().is_ok() {}
        crds.mark_unchanged();
        if let Some(why) = katalogs
            .new_problem_text()
            .or_else(|| motifs.new_problem_text())
        {
            tracing::warn!(error = why, "cannot watch Katalogs and Motifs");
        }
        let all_of = |count: usize, synced: &dyn Fn(usize) -> bool| (0..count).all(synced);
        let is_listed = all_of(states.len(), &|watch| katalogs.was_synced(watch))
            && all_of(others.len(), &|watch| motifs.was_synced(watch));
        if !is_listed {
            continue;
        }
        let compiled = compile_all(context, &katalogs, &motifs).await;
        let present: BTreeSet<KatalogRef> = compiled.keys().cloned().collect();
        for gone in earlier.difference(&present) {
            publisher.remove(gone);
        }
        publish(publisher, compiled);
        earlier = present;
        listed.send_replace(true);
    }
}

/// Watches the Katalogs, or the Komposers, of the namespaces.
fn watch_all(
    kind: Declaring,
    informers: &Informers,
    namespaces: &Namespaces,
    watches: &mut Watches<KatalogObject>,
) {
    for scope in namespaces.scopes() {
        watches.add(informers, &declaring(kind), scope, None);
    }
}

async fn compile_all(
    context: &Context,
    katalogs: &Watches<KatalogObject>,
    motifs: &Watches<Motif>,
) -> BTreeMap<KatalogRef, Compiled> {
    let mut known_motifs = BTreeMap::new();
    for (_, handle) in &motifs.handles {
        for record in handle.store().snapshot() {
            let document = Arc::clone(&record.content.0);
            let metadata = &document["metadata"];
            let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
            known_motifs.insert((text("namespace"), text("name")), document);
        }
    }
    let mut compiled = BTreeMap::new();
    for watch in 0..katalogs.handles.len() {
        for object in katalogs.all(watch) {
            let reference = object.reference();
            let motif = |name: &str| {
                let key = (reference.namespace.clone(), name.to_owned());
                let found = known_motifs.get(&key).cloned();
                found.ok_or_else(|| format!("there is no Motif `{name}`"))
            };
            let document = object.document.tree();
            let taken = used_motifs::take(&document, &Artifacts::new(), &motif);
            let mut kinds = kinds_named(&document);
            let asked = taken.asked.iter().filter_map(|(_, motif)| motif.as_deref());
            kinds.extend(asked.flat_map(kinds_named));
            let schemas = whole_schemas(&context.cluster, &known(&context.crds, &kinds)).await;
            let judged = match judge(&reference, &document, &taken, &schemas) {
                Ok(judged) => {
                    let revision = object.status.revision.clone().unwrap_or_default();
                    Some((judged, revision))
                }
                Err(refusal) => {
                    tracing::info!(katalog = %reference, problems = refusal.message, "revision rejected");
                    last_accepted(context, &reference, &object).await
                }
            };
            let judged = judged
                .map(|(judged, revision)| (judged.with_admission(context.admission), revision));
            if let Some((RunnableRevision { plan, sources, .. }, revision)) = judged {
                compiled.insert(
                    reference,
                    Compiled {
                        plan,
                        sources,
                        revision,
                        object,
                    },
                );
            }
        }
    }
    compiled
}

/// Returns the newest stored revision that compiles, and its name.
async fn last_accepted(
    context: &Context,
    katalog: &KatalogRef,
    object: &KatalogObject,
) -> Option<(RunnableRevision, String)> {
    let uid = object.metadata.uid.clone().unwrap_or_default();
    let revisions = Revisions::new(&context.cluster, katalog, &uid);
    let stored = match revisions.list().await {
        Ok(stored) => stored,
        Err(error) => {
            tracing::warn!(%katalog, %error, "cannot read the accepted revisions of the Katalog");
            return None;
        }
    };
    for revision in stored.into_iter().rev() {
        let Some(whole) = revision.content() else {
            continue;
        };
        let motif = |name: &str| {
            let motif = whole.motifs.get(name).cloned();
            motif.map(Arc::new).ok_or_else(String::new)
        };
        let taken = used_motifs::take(&whole.document, &artifacts(&whole.sources), &motif);
        let mut kinds = kinds_named(&whole.document);
        if let Some(resolved) = taken.composed.as_ref().and_then(Composed::resolved) {
            kinds.extend(kinds_named(&resolved.to_json()));
        }
        let schemas = whole_schemas(&context.cluster, &known(&context.crds, &kinds)).await;
        if let Ok(judged) = judge(katalog, &whole.document, &taken, &schemas.trusting()) {
            return Some((judged, revision.name));
        }
    }
    None
}

/// Publishes the plans. Of two Katalogs that declare a kind, the older one has it.
fn publish(publisher: &Publisher, compiled: BTreeMap<KatalogRef, Compiled>) {
    let mut by_age: Vec<(KatalogRef, Compiled)> = compiled.into_iter().collect();
    by_age.sort_by_key(|(_, katalog)| {
        let metadata = &katalog.object.metadata;
        let created = metadata.creation_timestamp.as_ref().map(|time| time.0);
        (created, metadata.uid.clone())
    });
    let mut holders: BTreeMap<GroupKind, KatalogRef> = BTreeMap::new();
    for (reference, katalog) in by_age {
        let Compiled {
            plan,
            sources,
            revision,
            object,
        } = katalog;
        let operators = plan.operators.iter().map(|operator| {
            let holder = holders
                .entry(operator.resource.group_kind())
                .or_insert_with(|| reference.clone());
            OperatorView {
                wanted: Revised {
                    plan: operator.clone(),
                    revision: revision.as_str().into(),
                },
                status: watch::channel(OperatorStatus::default()).1,
                conflict: (*holder != reference).then(|| holder.to_string()),
                reported: None,
            }
        });
        publisher.put(KatalogView {
            about: object.document.about.clone(),
            operators: operators.collect(),
            ready: readiness(&object.status),
            revision: Some(revision),
            kind: reference.kind,
            sources: SourceView::of(&object.status.sources, &sources),
            plan: Some(plan),
            disabled: Vec::new(),
            settled: true,
            reference,
        });
    }
}

/// Returns the `Ready` condition that the controller has written.
fn readiness(status: &KatalogStatus) -> Readiness {
    let ready = status.conditions.iter().find(|one| one.type_ == "Ready");
    Readiness {
        status: ready.and_then(|ready| match ready.status.to_string().as_str() {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }),
        reason: ready.map_or("Unknown".into(), |ready| ready.reason.clone().into()),
        message: ready.map_or_else(String::new, |ready| ready.message.clone()),
    }
}
