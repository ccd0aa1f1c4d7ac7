//! Data beyond a custom resource and its children, by kind of source.
//!
//! ```text
//!  objects         Secrets, ConfigMaps and other objects, by name        calls           external calls
//!  cross           custom resources of other operators                   introspection   the operator itself
//!  related         pods, endpoints, nodes: additions to children         observed        objects and Events that trigger passes
//!  scalers         autoscalers of children                               readers         who reads what: whom a change queues
//! ```
//!
//! A pass asks by a `Read` of the core, and `pass/answers.rs` has an arm for each. [`OperatorSources`] outlive a plan;
//! [`PlanSources`] are those of one plan.

pub(crate) mod calls;
pub(crate) mod cross;
pub(crate) mod introspection;
pub(crate) mod objects;
pub(crate) mod observed;
pub(crate) mod readers;
pub(crate) mod related;
pub(crate) mod scalers;

use std::{collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use orkestra_cluster::watch::{MemoryUse, WatchProblem};
use orkestra_engine::reconcile::sources::Read;
use orkestra_ground::changes::{change, first};
use orkestra_language::enrich::Relation;
use orkestra_object::value::Key;
use orkestra_plan::{GroupKind, ObjectKey, OperatorPlan};
use tokio::sync::watch;

use self::{
    calls::OperatorCalls,
    cross::{TargetState, Targets},
    introspection::OwnOperator,
    objects::Objects,
    observed::{Kinds, Observed, Wake},
    readers::Readers,
    related::RelatedWatches,
    scalers::Scalers,
};
use super::{context::Context, queue::WorkQueue, status::health::OperatorState};
use crate::external::Client;

/// What the passes of one operator read beside custom resources and their children, and which of them read it.
pub(crate) struct OperatorSources {
    /// External calls that passes wait for.
    pub(crate) calls: OperatorCalls,
    /// Which custom resources read which objects beside themselves and their children.
    pub(crate) readers: Arc<Readers>,
    /// The known objects of other owners.
    pub(crate) objects: Objects,
    /// The autoscalers of children.
    pub(crate) scalers: Scalers,
}

impl OperatorSources {
    /// Creates the sources of an operator, which queue custom resources in `queue` when an answer changes.
    pub(crate) fn new(
        context: &Arc<Context>,
        client: Client,
        queue: &WorkQueue<ObjectKey>,
    ) -> Self {
        let readers = Arc::new(Readers::new(queue.clone()));
        Self {
            calls: OperatorCalls::new(client, queue.clone()),
            objects: Objects::new(context.clone(), readers.clone()),
            scalers: Scalers::new(context.clone(), queue.clone()),
            readers,
        }
    }

    /// Records that a pass over a custom resource has read exactly these.
    pub(crate) fn read<'r>(&self, key: &ObjectKey, reads: impl IntoIterator<Item = &'r Read>) {
        let unread = self.readers.settle(key, reads);
        self.objects.release(&unread);
    }

    /// Returns the problems of the watches that passes have started.
    pub(crate) fn problems(&self) -> Vec<(GroupKind, WatchProblem)> {
        let mut problems = self.objects.problems();
        problems.extend(self.scalers.problem());
        problems
    }

    /// Returns a future that completes when a watch that passes have started by now changes its state.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + use<> {
        let mut states = self.objects.states();
        states.extend(self.scalers.states());
        for state in &mut states {
            state.mark_unchanged();
        }
        async move { first(states.iter_mut().map(change)).await }
    }

    /// Removes a deleted custom resource.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.calls.end(key);
        let unread = self.readers.forget(key);
        self.objects.release(&unread);
        self.scalers.settle(key, &[]);
    }
}

/// What the passes of one plan read from watches and from memory. Another plan has other ones.
pub(crate) struct PlanSources {
    /// The custom resources of other operators.
    pub(crate) targets: Targets,
    /// The operator itself, for templates that read its health or its metrics.
    pub(crate) own: OwnOperator,
    /// Objects from which additions to children are made.
    pub(crate) related: RelatedWatches,
    /// Other objects whose changes trigger passes.
    pub(crate) observed: Observed,
}

/// The state of the sources of a plan that affects all custom resources: whether something they read can be read.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PlanSourceStates {
    targets: BTreeMap<Key, TargetState>,
    related: Vec<(Relation, Result<(), String>)>,
    observed: (Vec<bool>, Vec<Result<(), String>>),
    /// The state of the operator itself, if the plan reads it.
    own: Option<OperatorState>,
}

impl PlanSources {
    /// Starts, or joins, the watches of `plan`. `observed` are the kinds that it observes, as they are served, and whether its
    /// custom resources are namespaced; `wake` is called for each relevant change of their objects.
    pub(crate) fn start(
        context: &Context,
        readers: &Arc<Readers>,
        plan: &Arc<OperatorPlan>,
        (observed, wake): ((Kinds, bool), &Wake),
    ) -> Self {
        Self {
            targets: Targets::start(context, readers, plan),
            own: OwnOperator::find(context, plan),
            related: RelatedWatches::start(context, readers, plan),
            observed: Observed::start(context, plan, observed, wake),
        }
    }

    /// Returns when everything was read once, or cannot be read.
    pub(crate) async fn looked_at(&self) {
        self.targets.looked_at().await;
        self.related.looked_at().await;
        self.observed.looked_at().await;
    }

    /// Returns the current states.
    pub(crate) fn states(&self) -> PlanSourceStates {
        PlanSourceStates {
            targets: self.targets.source_states(),
            related: self.related.readable(),
            observed: self.observed.source_states(),
            own: self.own.source_state(),
        }
    }

    /// Returns futures that complete when [`PlanSources::states`] may have changed.
    pub(crate) fn changes(&self) -> Vec<BoxFuture<'static, ()>> {
        let mut changes = self.targets.changes();
        changes.extend(self.own.change());
        let states = self.related.states().into_iter();
        changes.extend(states.chain(self.observed.states()).map(next));
        changes
    }

    /// Returns the problems of the watches.
    pub(crate) fn problems(&self) -> impl Iterator<Item = (GroupKind, WatchProblem)> {
        let targets = self.targets.problems().into_iter();
        targets
            .chain(self.related.problems())
            .chain(self.observed.problems())
    }

    /// Returns the number of records held; those of custom resources of other operators count for these.
    pub(crate) fn held(&self) -> MemoryUse {
        self.related.held() + self.observed.held()
    }
}

/// Returns at the next change of a watched value.
pub(crate) fn next<T: Send + Sync + 'static>(
    mut value: watch::Receiver<T>,
) -> BoxFuture<'static, ()> {
    value.mark_unchanged();
    Box::pin(async move { change(&mut value).await })
}
