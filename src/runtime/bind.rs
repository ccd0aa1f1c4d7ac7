//! Turns a plan into watches, and subscribes to their changes.

use std::{collections::BTreeMap, sync::Arc};

use orkestra_cluster::{
    watch::{Scoped, Subscriber, Watched},
    wire::{Scope, Served},
};
use orkestra_core::{
    api::names,
    plan::{self, GroupKind, ObjectKey, OperatorPlan, Places},
    reconcile::{
        crd::CrdRecord,
        facts::CrdFacts,
        record::{ChildRecord, CrRecord, Uid, kept_paths},
        status::written_paths,
    },
};

use super::{
    bound::Bound,
    kinds::Found,
    orphans::mark_of,
    queue::Lane,
    shared::Shared,
    sources::{
        cross::Targets,
        observed::{self, Observed},
        related::Belongings,
    },
};

/// Starts, or joins, the watches that a plan needs for that CRD.
pub(super) fn bind(
    shared: &Arc<Shared>,
    (crd, plan, facts): (&CrdRecord, Arc<OperatorPlan>, CrdFacts),
    found: Found,
    observed: observed::Kinds,
) -> Bound {
    let served = Served {
        group: plan.resource.group.clone(),
        version: plan.resource.version.clone(),
        kind: plan.resource.kind.clone(),
        plural: crd.plural.clone(),
        namespaced: facts.namespaced,
    };
    let declared = shared.context.accepted.of(&plan);
    let informers = &shared.context.informers;
    let paths = kept_paths(&plan.reads.cr, written_paths(&plan).into_iter());
    let selected = custom_resources(&served, &plan);
    let crs = Scoped::start(&selected, &plan.own_places(), |part| {
        informers.crs(part, &paths, Some(on_cr(shared)))
    });
    // Labelled custom resources and children of earlier revisions are watched too, in all namespaces that were declared.
    let managed = format!("{}=true", names::LABEL_MANAGED);
    let marked = (plan.watched != plan::Watched::default()).then(|| {
        let marked = watched(&served, Some(managed.clone()));
        Scoped::start(&marked, &declared.places, |part| {
            informers.crs(part, &[], Some(on_marked(shared)))
        })
    });
    let kinds = found.served.iter().map(|(kind, child)| {
        let reads = plan.reads.children.get(kind);
        let reads = reads.map_or(&[][..], Vec::as_slice);
        let children = watched(child, Some(managed.clone()));
        Arc::new(Scoped::start(
            &children,
            &declared.places_of(kind),
            |part| informers.children(part, reads, Some(on_child(shared))),
        ))
    });
    Bound {
        manager: plan.field_manager(),
        home: shared.context.home.clone(),
        kinds: kinds.collect(),
        targets: Targets::start(shared, &plan),
        belongings: Belongings::start(shared, &plan),
        observed: Observed::start(shared, &plan, observed, facts.namespaced),
        read_places: read_places(&plan),
        plan,
        declared,
        facts,
        crs,
        marked,
        absent: found.absent,
    }
}

/// Queues a custom resource when it changes.
fn on_cr(shared: &Arc<Shared>) -> Subscriber<CrRecord> {
    let shared = Arc::downgrade(shared);
    Arc::new(move |change| {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        match (&change.before, &change.after) {
            (before, Some(after)) => {
                // It was deleted and created again.
                if let Some(before) = before.as_ref().filter(|one| one.id.uid != after.id.uid) {
                    leave(&shared, &before.id.uid, &change.key);
                }
                shared.learn(&after.id.uid, &change.key);
                shared.queue.let_through(&change.key, after.deleting);
                shared.enqueue(change.key.clone(), Lane::Changed);
            }
            (Some(before), None) => {
                leave(&shared, &before.id.uid, &change.key);
                // It may no longer match the watch's selector, and still exist.
                if before.managed && !before.deleting {
                    shared.enqueue(change.key.clone(), Lane::Changed);
                }
            }
            (None, None) => {}
        }
        shared.compare_anew(&change.key);
        shared.changed.notify_one();
    })
}

/// Handles the removal of the custom resource with that uid.
fn leave(shared: &Shared, uid: &Uid, key: &ObjectKey) {
    shared.unlearn(uid, key);
    if let Some(bound) = shared.bound.load_full() {
        shared.notice_orphans_of(&bound, uid);
    }
}

/// Queues custom resources that carry our label and are no longer managed, so that they are released.
fn on_marked(shared: &Arc<Shared>) -> Subscriber<CrRecord> {
    let shared = Arc::downgrade(shared);
    Arc::new(move |change| {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let bound = shared.bound.load();
        if bound
            .as_ref()
            .is_some_and(|bound| bound.stray(&change.key).is_some())
        {
            shared.enqueue(change.key.clone(), Lane::Changed);
        }
    })
}

/// Queues the owner of a child that changes.
fn on_child(shared: &Arc<Shared>) -> Subscriber<ChildRecord> {
    let shared = Arc::downgrade(shared);
    Arc::new(move |change| {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        // An operator that is bound later looks at every child itself.
        let bound = shared.bound.load();
        let Some(bound) = bound.as_deref() else {
            return;
        };
        let mut owned = false;
        for record in [&change.before, &change.after].into_iter().flatten() {
            if let Some(key) = record.owner().and_then(|uid| shared.owner(uid)) {
                shared.enqueue(key, Lane::Changed);
                owned = true;
            } else if let Some(mark) = mark_of(bound, record).filter(|_| change.after.is_none()) {
                // A new custom resource of that name may be waiting for the deletion of this child.
                shared.enqueue(mark.key.clone(), Lane::Changed);
            }
        }
        if let Some(after) = change.after.as_ref().filter(|_| !owned) {
            shared.notice_orphan(bound, after);
        }
    })
}

/// The custom resources that a plan manages, as far as the API server can select them.
fn custom_resources(served: &Served, plan: &OperatorPlan) -> Watched {
    Watched {
        served: served.clone(),
        scope: Scope {
            namespace: None,
            selector: plan.watched.label_selector(),
            fields: plan.watched.field_selector(),
        },
    }
}

/// The namespaces of objects that a plan reads by name, by kind.
fn read_places(plan: &OperatorPlan) -> BTreeMap<GroupKind, Places> {
    let kinds = plan.kinds_read_by_name().into_iter();
    kinds
        .map(|kind| {
            let places = plan.read_places(&kind);
            (kind, places)
        })
        .collect()
}

/// Objects in all namespaces.
fn watched(served: &Served, selector: Option<String>) -> Watched {
    Watched {
        served: served.clone(),
        scope: Scope {
            namespace: None,
            selector,
            fields: None,
        },
    }
}
