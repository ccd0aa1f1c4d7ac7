//! What belongs to children: pods of workloads, endpoints of Services. One watch for each kind in the process.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use orkestra_core::{
    api::EnrichTarget,
    plan::{EnrichPlan, GroupKind, OperatorPlan},
    reconcile::{
        related::{Related, RelatedRead},
        sources::{Answer, Read},
        verdict::{Action, Executed},
    },
    value::Node,
};

use super::super::{
    shared::Shared,
    watch::{Change, Handle, Subscriber, WatchProblem, WatchState, Watched},
    wire::{Scope, Served},
};

/// What is watched for the plan of one operator.
#[derive(Default)]
pub(in crate::runtime) struct Belongings(BTreeMap<EnrichTarget, Handle<Related>>);

impl Belongings {
    /// Watches what templates of `plan` read beside children.
    pub(in crate::runtime) fn start(shared: &Arc<Shared>, plan: &OperatorPlan) -> Self {
        let is_read = |target: &EnrichTarget| {
            let mut entries = plan.enrich.iter().filter(|entry| entry.target == *target);
            entries.any(|entry| {
                let mut kinds = plan.reads.children.keys();
                kinds.any(|kind| entry.is_read(&plan.reads, kind))
            })
        };
        let watch = |target| {
            let told = told(Arc::downgrade(shared), target);
            let informers = &shared.context.informers;
            (target, informers.related(watched(target), Some(told)))
        };
        Self(
            EnrichTarget::ALL
                .into_iter()
                .filter(is_read)
                .map(watch)
                .collect(),
        )
    }

    /// Returns when everything was read once, or cannot be.
    pub(in crate::runtime) async fn looked_at(&self) {
        for watch in self.0.values() {
            watch.looked_at().await;
        }
    }

    /// How the watches are doing.
    pub(in crate::runtime) fn states(&self) -> Vec<tokio::sync::watch::Receiver<WatchState>> {
        self.0.values().map(Handle::state).collect()
    }

    /// What keeps watches from their work.
    pub(in crate::runtime) fn troubles(&self) -> Vec<(GroupKind, WatchProblem)> {
        self.0.values().filter_map(Handle::trouble).collect()
    }

    /// What can be read at the moment.
    pub(in crate::runtime) fn readable(&self) -> Vec<(EnrichTarget, Result<(), String>)> {
        let all = self.0.iter();
        all.map(|(target, watch)| (*target, readable(watch)))
            .collect()
    }
}

/// Why it cannot be told what belongs to a child, if it cannot.
fn readable(watch: &Handle<Related>) -> Result<(), String> {
    match &*watch.state().borrow() {
        WatchState::Synced
        | WatchState::Failing {
            problem: WatchProblem::Unavailable { .. },
            was_synced: true,
        } => Ok(()),
        WatchState::Starting => Err("they are being read for the first time".to_owned()),
        WatchState::Failing {
            problem: WatchProblem::NotServed,
            ..
        } => Err("the API server does not serve them".to_owned()),
        WatchState::Failing {
            problem: WatchProblem::Unavailable { message } | WatchProblem::Forbidden { message },
            ..
        } => Err(message.clone()),
    }
}

fn watched(target: EnrichTarget) -> Watched {
    let (group, version, kind, plural, label) = target.objects();
    Watched {
        served: Served {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced: true,
        },
        scope: Scope {
            selector: Some(label.to_owned()),
            ..Scope::default()
        },
    }
}

/// Queues whoever reads what belongs to the same child.
fn told(shared: Weak<Shared>, target: EnrichTarget) -> Subscriber<Related> {
    Arc::new(move |change: &Change<Related>| {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        for record in [&change.before, &change.after].into_iter().flatten() {
            let Some(of) = record.of.clone() else {
                continue;
            };
            let read = Read::Related(RelatedRead { target, of });
            shared.readers.changed(&read);
        }
    })
}

/// Whether a pass made children to which something is added: nobody waits for that yet.
pub(in crate::runtime) fn are_new(plan: &OperatorPlan, executed: &Executed) -> bool {
    let mut made = executed.done.iter();
    made.any(|done| {
        let is_read = |entry: &EnrichPlan| entry.is_read(&plan.reads, &done.key.kind);
        done.action == Action::Created && plan.enrich.iter().any(is_read)
    })
}

/// What belongs to the child that a pass asks about, by name.
pub(super) fn read(belongings: &Belongings, read: &RelatedRead) -> Answer {
    let Some(watch) = belongings.0.get(&read.target) else {
        return Answer::Unavailable("the plan does not read it".into());
    };
    if let Err(why) = readable(watch) {
        return Answer::Unavailable(why.into());
    }
    let found = watch.store().owned_by(&read.of);
    let views = found
        .iter()
        .flat_map(|(_, record)| record.view.iter().cloned());
    Answer::Ready(Arc::new(Node::from(views.collect::<Vec<_>>())))
}
