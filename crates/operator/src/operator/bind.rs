//! Turns a plan into watches, and subscribes to their changes.

use std::sync::Arc;

use orkestra_cluster::{
    requests::{Scope, Served},
    watch::{Scoped, Subscriber, Watched},
};
use orkestra_engine::reconcile::{
    crd::CrdRecord,
    crd_status::CrdStatus,
    observe::Lead,
    record::{ChildRecord, CrRecord, Uid, kept_paths},
    status::written_paths,
};
use orkestra_language::api::names;
use orkestra_plan::{self, GroupKind, ObjectKey, ObjectNamespaces, OperatorPlan};

use super::kinds::ServedKinds;
use crate::{
    queue::Lane,
    shared::{Shared, bound_plan::BoundPlan, orphaned::owner_mark},
    sources::{
        PlanSources,
        observed::{self, Wake},
    },
};

/// Starts, or joins, the watches that a plan needs for that CRD.
pub(crate) fn bind(
    shared: &Arc<Shared>,
    (crd, plan, crd_status): (&CrdRecord, Arc<OperatorPlan>, CrdStatus),
    found: ServedKinds,
    observed: observed::Kinds,
) -> BoundPlan {
    let served = served(crd, &plan, crd_status.namespaced);
    let (context, readers) = (&shared.context, &shared.sources.readers);
    let declared = context.accepted.of(&plan);
    let informers = &context.informers;
    let paths = kept_paths(&plan.reads.cr, written_paths(&plan).into_iter());
    let selected = custom_resources(&served, &plan);
    let crs = Scoped::start(&selected, &plan.own_places(), |part| {
        informers.shared(part, &paths, Some(on_cr(shared)))
    });
    // Labelled custom resources and children of earlier revisions are watched too, in all namespaces that were declared.
    let managed = format!("{}=true", names::LABEL_MANAGED);
    let marked = (plan.watched != orkestra_plan::Watched::default()).then(|| {
        let marked = watched(&served, Some(managed.clone()));
        Scoped::start(&marked, &declared.places, |part| {
            informers.shared(part, &[], Some(on_marked(shared)))
        })
    });
    let kinds = found.served.iter().map(|(kind, child)| {
        let reads = plan.reads.of_children(kind);
        let children = watched(child, Some(managed.clone()));
        Arc::new(Scoped::start(
            &children,
            &declared.places_of(kind),
            |part| informers.shared(part, reads, Some(on_child(shared, kind.clone()))),
        ))
    });
    BoundPlan {
        manager: plan.field_manager(),
        home: context.home.clone(),
        kinds: kinds.collect(),
        sources: PlanSources::start(
            context,
            readers,
            &plan,
            ((observed, crd_status.namespaced), &on_observed(shared)),
        ),
        read_places: read_places(&plan),
        plan,
        declared,
        crd_status,
        crs,
        marked,
        absent: found.absent,
    }
}

/// Returns how the custom resources of a plan are served.
fn served(crd: &CrdRecord, plan: &OperatorPlan, namespaced: bool) -> Served {
    Served {
        group: plan.resource.group.clone(),
        version: plan.resource.version.clone(),
        kind: plan.resource.kind.clone(),
        plural: crd.plural.clone(),
        namespaced,
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
                shared.instances.add(&after.id.uid, &change.key);
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
    shared.forget_resource(uid, key);
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
            .is_some_and(|bound| bound.formerly_managed(&change.key).is_some())
        {
            shared.enqueue(change.key.clone(), Lane::Changed);
        }
    })
}

/// Queues the owner of a child of that kind that changes.
fn on_child(shared: &Arc<Shared>, kind: GroupKind) -> Subscriber<ChildRecord> {
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
            if let Some(key) = owner_of(&shared, bound, &kind, record) {
                shared.enqueue(key, Lane::Changed);
                owned = true;
            } else if let Some(mark) = owner_mark(bound, record).filter(|_| change.after.is_none())
            {
                // A new custom resource of that name may be waiting for the deletion of this child.
                shared.enqueue(mark.key.clone(), Lane::Changed);
            }
        }
        if let Some(after) = change.after.as_ref().filter(|_| !owned) {
            shared.notice_orphan(bound, &kind, after);
        }
    })
}

/// Returns the custom resource that owns a child of that kind.
fn owner_of(
    shared: &Shared,
    bound: &BoundPlan,
    kind: &GroupKind,
    record: &ChildRecord,
) -> Option<ObjectKey> {
    let uid = record.owner()?;
    let key = shared.instances.owner(uid)?;
    let owner = bound.owner_mark_of(&key, uid);
    bound.may_own(&owner, kind, record).then_some(key)
}

/// Queues the custom resources to which a change of an observed object leads.
fn on_observed(shared: &Arc<Shared>) -> Wake {
    let shared = Arc::downgrade(shared);
    Arc::new(move |lead, object| {
        if let Some(shared) = shared.upgrade() {
            wake(&shared, lead, object);
        }
    })
}

/// Queues the custom resources to which a change of `object` leads. Missing ones have a pass when they are created.
fn wake(shared: &Shared, lead: &Lead, object: &ObjectKey) {
    // Before a plan is bound, no custom resource has had a pass.
    let Some(bound) = shared.bound.load_full() else {
        return;
    };
    let key = match lead {
        // The object itself names its owner, so it counts where that one may have children.
        Lead::Uid(uid) => shared.instances.owner(uid).filter(|key| {
            let owner = bound.owner_mark_of(key, uid);
            bound.reaches(&owner, None, object.namespace.as_deref())
        }),
        Lead::About(kind, key) if bound.served().is(kind) => Some(key.clone()),
        Lead::About(kind, key) => {
            let child = bound.kind(kind).and_then(|kind| kind.store().get(key));
            child.and_then(|child| owner_of(shared, &bound, kind, &child))
        }
        Lead::Name(None, name) if bound.served().namespaced => {
            let mut all = bound.cr_keys();
            all.retain(|key| key.name == *name);
            for key in all {
                shared.enqueue(key, Lane::Changed);
            }
            None
        }
        Lead::Name(namespace, name) => Some(ObjectKey {
            namespace: namespace.clone(),
            name: name.clone(),
        }),
    };
    if let Some(key) = key.filter(|key| bound.cr(key).is_some()) {
        shared.enqueue(key, Lane::Changed);
    }
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
fn read_places(plan: &OperatorPlan) -> Box<[(GroupKind, ObjectNamespaces)]> {
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
