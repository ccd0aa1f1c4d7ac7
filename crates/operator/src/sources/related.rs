//! The sources of additions to children: pods of workloads, endpoints of Services, nodes. One watch for each kind of relation
//! in the process.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use orkestra_cluster::{
    requests::Scope,
    watch::{Change, MemoryUse, Scoped, Subscriber, WatchProblem, WatchState, Watched},
};
use orkestra_engine::reconcile::{
    related::{Related, RelatedBy, RelatedRead},
    sources::{Answer, Read},
    verdict::{Action, Executed},
};
use orkestra_language::enrich::Relation;
use orkestra_object::value::Node;
use orkestra_plan::{GroupKind, OperatorPlan};

use super::readers::Readers;
use crate::context::Context;

/// The watches for the plan of one operator.
#[derive(Default)]
pub(crate) struct RelatedWatches(BTreeMap<Relation, Scoped<Related>>);

impl RelatedWatches {
    /// Watches what templates of `plan` read beside children.
    pub(crate) fn start(context: &Context, readers: &Arc<Readers>, plan: &OperatorPlan) -> Self {
        let watch = |relation| {
            let subscriber = queue_readers(Arc::downgrade(readers), relation);
            let informers = &context.informers;
            let places = plan.related_places(relation);
            let watch = Scoped::start(&watched(relation)?, &places, |part| {
                informers.shared(part, &[], Some(subscriber.clone()))
            });
            Some((relation, watch))
        };
        Self(plan.relations().into_iter().filter_map(watch).collect())
    }

    /// Returns when everything was read once, or cannot be read.
    pub(crate) async fn looked_at(&self) {
        for watch in self.0.values() {
            watch.looked_at().await;
        }
    }

    /// Returns the states of the watches.
    pub(crate) fn states(&self) -> Vec<tokio::sync::watch::Receiver<WatchState>> {
        self.0.values().flat_map(Scoped::states).collect()
    }

    /// Returns the problems of the watches.
    pub(crate) fn problems(&self) -> Vec<(GroupKind, WatchProblem)> {
        self.0.values().filter_map(Scoped::problem).collect()
    }

    /// Returns the number of records held.
    pub(crate) fn held(&self) -> MemoryUse {
        self.0.values().map(|watch| watch.store().held()).sum()
    }

    /// Returns which relations can be read at the moment.
    pub(crate) fn readable(&self) -> Vec<(Relation, Result<(), String>)> {
        let all = self.0.iter();
        all.map(|(relation, watch)| (*relation, watch.readable()))
            .collect()
    }
}

fn watched(relation: Relation) -> Option<Watched> {
    let objects = relation.objects();
    Some(Watched {
        served: crate::served::built_in(&objects.kind, objects.version)?,
        scope: Scope {
            namespace: None,
            selector: objects.labels.map(str::to_owned),
            fields: objects.fields.map(str::to_owned),
        },
    })
}

/// Queues the readers of a changed object.
fn queue_readers(readers: Weak<Readers>, relation: Relation) -> Subscriber<Related> {
    Arc::new(move |change: &Change<Related>| {
        let Some(readers) = readers.upgrade() else {
            return;
        };
        for record in [&change.before, &change.after].into_iter().flatten() {
            if let Some(read) = record.found_by(relation) {
                readers.changed(&Read::Related(read));
            }
        }
    })
}

/// True if a pass created children that receive additions from other objects: no read is recorded for them yet.
pub(crate) fn are_new(plan: &OperatorPlan, executed: &Executed) -> bool {
    let gets = |kind: &GroupKind| {
        let mut read = plan.additions_read();
        read.any(|(addition, of)| of == kind && addition.source.relation().is_some())
    };
    let mut made = executed.done.iter();
    made.any(|done| done.action == Action::Created && gets(&done.key.kind))
}

/// Returns the kept fields of the objects that a pass asks for, by name.
pub(crate) fn read(related: &RelatedWatches, read: &RelatedRead) -> Answer {
    let Some(watch) = related.0.get(&read.relation) else {
        return Answer::Unavailable("the plan does not read it".into());
    };
    if let Err(why) = watch.readable() {
        return Answer::Unavailable(why.into());
    }
    let views: Vec<Node> = match &read.by {
        RelatedBy::Belonging(of) => {
            let found = watch.store().owned_by(of);
            found
                .iter()
                .map(|(_, record)| record.view.clone())
                .collect()
        }
        RelatedBy::Key(key) => match watch.store().get(key) {
            Some(record) => vec![record.view.clone()],
            None => return Answer::Absent,
        },
    };
    Answer::Ready(Arc::new(Node::from(views)))
}
