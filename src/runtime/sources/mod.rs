//! Data beyond a custom resource and its children, by kind of source.
//!
//! ```text
//!  objects         Secrets, ConfigMaps and other objects, by name        calls           external calls
//!  cross           custom resources of other operators                   introspection   the operator itself
//!  related         pods, endpoints, nodes: additions to children         observed        objects and Events that trigger passes
//!  scalers         autoscalers of children                               readers         who reads what: whom a change queues
//! ```
//!
//! A pass asks by a `Read` of the core, and `pass/answers.rs` has an arm for each.

pub(super) mod calls;
pub(super) mod cross;
pub(super) mod introspection;
pub(super) mod objects;
pub(super) mod observed;
pub(super) mod readers;
pub(super) mod related;
pub(super) mod scalers;

use std::sync::Arc;

use futures::future::BoxFuture;
use orkestra_core::{plan::ObjectKey, reconcile::sources::Read};
use orkestra_ground::changes::change;
use tokio::sync::watch;

use self::{calls::OperatorCalls, objects::Objects, readers::Readers, scalers::Scalers};
use super::{context::Context, queue::WorkQueue};
use crate::external::Client;

/// What the passes of one operator read beside custom resources and their children, and which of them read it.
pub(super) struct OperatorSources {
    /// External calls that passes wait for.
    pub(super) calls: OperatorCalls,
    /// Which custom resources read which objects beside themselves and their children.
    pub(super) readers: Arc<Readers>,
    /// The known objects of other owners.
    pub(super) objects: Objects,
    /// The autoscalers of children.
    pub(super) scalers: Scalers,
}

impl OperatorSources {
    /// Creates the sources of an operator, which queue custom resources in `queue` when an answer changes.
    pub(super) fn new(
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
    pub(super) fn read<'r>(&self, key: &ObjectKey, reads: impl IntoIterator<Item = &'r Read>) {
        let unread = self.readers.settle(key, reads);
        self.objects.release(&unread);
    }

    /// Removes a deleted custom resource.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.calls.end(key);
        let unread = self.readers.forget(key);
        self.objects.release(&unread);
        self.scalers.settle(key, &[]);
    }
}

/// Returns at the next change of a watched value.
pub(super) fn next<T: Send + Sync + 'static>(
    mut value: watch::Receiver<T>,
) -> BoxFuture<'static, ()> {
    value.mark_unchanged();
    Box::pin(async move { change(&mut value).await })
}
