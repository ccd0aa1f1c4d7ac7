//! Why children are not ready yet: read from the Pods and Events behind them, after some time of waiting and rarely.
//!
//! Nothing is watched: a Pod that is not ready says so for as long as it is not. A missing permission is no failure: the status
//! says less.

use std::time::Duration;

use orkestra_cluster::requests::{ClusterError, Scope, Served};
use orkestra_engine::reconcile::{
    behind::{self, Awaited},
    kstatus::Readiness,
    record::{ChildRecord, Observed},
    verdict::{Action, Executed},
};
use orkestra_plan::{ChildKey, pods};
use tokio::time::Instant;

use super::Pass;
use crate::shared::memory::Waiting;

/// The most children that are looked up; the others are only named.
const MOST: usize = 3;
/// The most Pods and Events that are read of one child.
const PAGE: u32 = 20;

/// Adds to `executed` why children are not ready, if they have not been for some time. Returns when to look again.
pub(crate) async fn explain(
    pass: &Pass<'_>,
    after: &Observed,
    executed: &mut Executed,
) -> Option<Duration> {
    let awaited = awaited(after, executed);
    if awaited.is_empty() || !executed.failures.is_empty() {
        pass.memory().waiting = None;
        return None;
    }
    let now = Instant::now();
    let time = pass.shared.context.clock.now();
    let waited = behind::waiting_since(&after.cr).map_or(Duration::ZERO, |since| {
        Duration::try_from(time.duration_since(since)).unwrap_or_default()
    });
    let is_due = {
        let mut memory = pass.memory();
        let waiting = memory
            .waiting
            .get_or_insert_with(|| Waiting::begin(now, waited));
        waiting.is_due(now)
    };
    if is_due {
        let mut found = Vec::new();
        for (key, record, readiness) in awaited.iter().take(MOST) {
            let cause = cause(pass, key, record).await.unwrap_or_else(|error| {
                tracing::debug!(child = %key, %error, "cannot read why it is not ready");
                None
            });
            found.push(Awaited::new((*key).clone(), readiness, cause.as_deref()));
        }
        if let Some(waiting) = &mut pass.memory().waiting {
            waiting.note(now, found);
        }
    }
    let memory = pass.memory();
    let waiting = memory.waiting.as_ref()?;
    let is_awaited = |one: &&Awaited| awaited.iter().any(|(key, ..)| **key == one.child);
    executed.awaited = waiting.found().iter().filter(is_awaited).cloned().collect();
    Some(waiting.due_in(now))
}

/// Returns the children that are not ready, with how far they are, as far as more can be said about their kinds.
fn awaited<'a>(
    after: &'a Observed,
    executed: &'a Executed,
) -> Vec<(&'a ChildKey, &'a ChildRecord, &'a str)> {
    let done = executed.done.iter();
    let children = done.filter(|done| done.action != Action::Deleted);
    let awaited = children.filter_map(|done| {
        let record: &ChildRecord = after.child(&done.key)?;
        match record.readiness() {
            found if found.is_unobserved() => None,
            Readiness::InProgress(text) => Some((&done.key, record, &**text)),
            _ => None,
        }
    });
    awaited
        .filter(|(key, ..)| pods::has_events(&key.kind))
        .collect()
}

/// Returns what the objects behind a child say.
async fn cause(
    pass: &Pass<'_>,
    key: &ChildKey,
    record: &ChildRecord,
) -> Result<Option<String>, ClusterError> {
    let Some(kind) = pass.bound.kind(&key.kind) else {
        return Ok(None);
    };
    let cluster = &pass.shared.requests.cluster;
    let namespace = key.object.namespace.as_ref().map(ToString::to_string);
    if key.kind.group.is_empty() && &*key.kind.kind == "Pod" {
        let pod = cluster.get(kind.served(), &key.object).await?;
        if let Some(trouble) = behind::trouble(&pod) {
            return Ok(Some(trouble));
        }
    }
    if pods::has_pods(&key.kind) {
        let workload = cluster.get(kind.served(), &key.object).await?;
        if let Some(selector) = behind::selector(&workload) {
            let scope = Scope {
                namespace: namespace.clone(),
                selector: Some(selector),
                ..Scope::default()
            };
            let kind = Served::namespaced("", "v1", "Pod", "pods");
            let page = cluster.list_page(&kind, &scope, PAGE, None).await?;
            if let Some(trouble) = behind::trouble_of_pods(&page.items) {
                return Ok(Some(trouble));
            }
        }
    }
    let scope = Scope {
        namespace,
        fields: Some(behind::events_of(&record.id.uid.to_string())),
        ..Scope::default()
    };
    let page = cluster
        .list_page(&Served::core_events(), &scope, PAGE, None)
        .await?;
    Ok(behind::trouble_of_events(&page.items))
}
