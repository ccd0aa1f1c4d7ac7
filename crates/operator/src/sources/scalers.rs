//! Autoscalers of children: which one owns `spec.replicas`, and when that ends.
//!
//! ```text
//!  replicas are not ours ── list ──► no autoscaler targets the child: they are drift
//!                            └─────► one does ──► watch of autoscalers ──────► its deletion, or another target, queues the owner
//! ```
//!
//! The watch starts with the first child that an autoscaler scales, and ends with the last one.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use orkestra_cluster::{
    requests::{ClusterError, Form, Scope, autoscalers},
    watch::{Change, Handle, Subscriber, WatchProblem, WatchState, Watched},
};
use orkestra_engine::reconcile::{record::Uid, scaler::Scaler};
use orkestra_object::value::Node;
use orkestra_plan::{ChildKey, GroupKind, ObjectKey};
use parking_lot::Mutex;

use super::objects::until_listed;
use crate::{
    context::Context,
    queue::{Lane, WorkQueue},
    requests::Requests,
};

/// The autoscalers that scale children of one operator.
pub(crate) struct Scalers {
    context: Arc<Context>,
    queue: WorkQueue<ObjectKey>,
    /// By namespace; none means all.
    watches: Mutex<Watches>,
    scaled: Arc<Mutex<Scaled>>,
}

/// By the watched namespace.
type Watches = BTreeMap<Option<Box<str>>, Arc<Handle<Scaler>>>;

/// The scaled children, as [`Scaler::of_target`] names them, with their custom resources.
type Scaled = HashMap<Uid, ObjectKey>;

impl fmt::Debug for Scalers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scalers").finish_non_exhaustive()
    }
}

impl Scalers {
    /// Creates the autoscalers of an operator; their changes put the owners of children into `queue`.
    pub(crate) fn new(context: Arc<Context>, queue: WorkQueue<ObjectKey>) -> Self {
        Self {
            context,
            queue,
            watches: Mutex::default(),
            scaled: Arc::default(),
        }
    }

    /// Returns the name of an autoscaler that scales `child` of the custom resource `owner`, which has a pass once none does.
    /// Autoscalers are watched in `namespace`, or in all.
    ///
    /// # Errors
    /// The API server's answer if autoscalers cannot be listed.
    pub(crate) async fn find(
        &self,
        requests: &Requests,
        owner: &ObjectKey,
        child: &ChildKey,
        namespace: Option<&str>,
    ) -> Result<Option<String>, ClusterError> {
        let target = Scaler::of_target(child);
        let known = self.watches.lock().get(&namespace.map(Into::into)).cloned();
        let watch = match known {
            Some(watch) => watch,
            None if list(requests, child, &target).await?.is_none() => return Ok(None),
            None => self.watch(namespace),
        };
        // Recorded before it is read, so that no change in between is missed.
        self.scaled.lock().insert(target.clone(), owner.clone());
        let found = if until_listed(&watch).await.is_none() {
            let found = watch.store().owned_by(&target);
            Ok(found.first().map(|(key, _)| key.name.to_string()))
        } else {
            list(requests, child, &target).await
        };
        if !matches!(found, Ok(Some(_))) {
            self.scaled.lock().remove(&target);
        }
        found
    }

    /// Records that a pass over `owner` has found exactly these children scaled.
    pub(crate) fn settle(&self, owner: &ObjectKey, children: &[(ChildKey, String)]) {
        let mut scaled = self.scaled.lock();
        if scaled.is_empty() {
            return;
        }
        let children = children.iter();
        let now: Vec<Uid> = children
            .map(|(child, _)| Scaler::of_target(child))
            .collect();
        scaled.retain(|target, of| of != owner || now.contains(target));
        if scaled.is_empty() {
            drop(scaled);
            self.watches.lock().clear();
        }
    }

    /// Returns the states of the watches.
    pub(crate) fn states(&self) -> Vec<tokio::sync::watch::Receiver<WatchState>> {
        let watches = self.watches.lock();
        watches.values().map(|watch| watch.state()).collect()
    }

    /// Returns the problem of a watch.
    pub(crate) fn problem(&self) -> Option<(GroupKind, WatchProblem)> {
        let watches = self.watches.lock();
        watches.values().find_map(|watch| watch.problem())
    }

    fn watch(&self, namespace: Option<&str>) -> Arc<Handle<Scaler>> {
        let start = || {
            let scoped = Watched {
                served: autoscalers(),
                scope: Scope {
                    namespace: namespace.map(str::to_owned),
                    ..Scope::default()
                },
            };
            let reported = queue_owner(&self.scaled, self.queue.clone());
            Arc::new(self.context.informers.shared(scoped, &[], Some(reported)))
        };
        let mut watches = self.watches.lock();
        watches
            .entry(namespace.map(Into::into))
            .or_insert_with(start)
            .clone()
    }
}

/// Queues the owner of a child that an autoscaler began or ceased to scale.
fn queue_owner(scaled: &Arc<Mutex<Scaled>>, queue: WorkQueue<ObjectKey>) -> Subscriber<Scaler> {
    let scaled = Arc::downgrade(scaled);
    Arc::new(move |change: &Change<Scaler>| {
        let Some(scaled) = scaled.upgrade() else {
            return;
        };
        for scaler in [&change.before, &change.after].into_iter().flatten() {
            let target = scaler.target.as_ref();
            let owner = target.and_then(|target| scaled.lock().get(target).cloned());
            if let Some(owner) = owner {
                queue.add(owner, Lane::Changed);
            }
        }
    })
}

/// Returns the name of an autoscaler in the child's namespace that scales it, from a request to the API server.
async fn list(
    requests: &Requests,
    child: &ChildKey,
    target: &Uid,
) -> Result<Option<String>, ClusterError> {
    let scope = Scope {
        namespace: child.object.namespace.as_deref().map(str::to_owned),
        ..Scope::default()
    };
    let projection = Scaler::projection();
    let (mut found, mut next) = (None, None::<String>);
    loop {
        let mut take = |object: Node| {
            let scaler = Scaler::read(&object).ok();
            let scaler =
                scaler.filter(|one| found.is_none() && one.target.as_ref() == Some(target));
            if let Some(scaler) = scaler {
                found = Some(scaler.id.key.name.to_string());
            }
        };
        let how = (Form::Whole, &projection);
        let answer = requests
            .list_page(how, &autoscalers(), &scope, next.as_deref(), &mut take)
            .await;
        next = match answer {
            Ok(next) => next,
            Err(ClusterError::NotFound(_) | ClusterError::NotServed(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        if found.is_some() || next.is_none() {
            return Ok(found);
        }
    }
}
