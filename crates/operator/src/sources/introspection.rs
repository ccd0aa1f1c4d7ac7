//! Data about an operator and its process, from memory.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use jiff::Timestamp;
use orkestra_engine::reconcile::{autoscale::AutoscaleMetrics, sources::Answer};
use orkestra_language::api::duration;
use orkestra_object::value::{Key, Node};
use orkestra_plan::{OperatorPlan, introspection::Introspection};
use tokio::sync::watch;

use super::next;
use crate::{
    context::{Context, operators::Listed},
    status::{OperatorStatus, health::OperatorState},
};

/// The operator itself, for templates that read its health or its metrics.
pub(crate) struct OwnOperator {
    listed: Option<Listed>,
    reads_health: bool,
    /// The namespace that the process is in; none outside of a cluster.
    home: Option<Arc<str>>,
}

impl OwnOperator {
    /// Finds the operator that runs `plan`.
    pub(crate) fn find(context: &Context, plan: &OperatorPlan) -> Self {
        Self {
            listed: context.operators.get(&plan.katalog, &plan.name),
            reads_health: plan.reads.roots.contains(Introspection::Health.root()),
            home: context.home.clone(),
        }
    }

    /// Returns its state, if the plan reads it: its change affects all custom resources.
    pub(crate) fn source_state(&self) -> Option<OperatorState> {
        let status = self.read_status()?;
        let status = status.borrow();
        Some(OperatorState::of(&status))
    }

    /// Returns a future that completes when [`OwnOperator::source_state`] may have changed; none if the plan does not read it.
    pub(crate) fn change(&self) -> Option<BoxFuture<'static, ()>> {
        self.read_status().map(next)
    }

    fn read_status(&self) -> Option<watch::Receiver<OperatorStatus>> {
        let listed = self.listed.as_ref().filter(|_| self.reads_health);
        listed.map(Listed::status)
    }

    /// Returns what a pass that began at `now` asks. The figures are those of the last publication.
    pub(crate) fn read(&self, read: Introspection, now: Timestamp) -> Answer {
        let current = || self.listed.as_ref().and_then(Listed::now);
        let node = match read {
            Introspection::Process => Some(process(self.home.as_deref())),
            Introspection::Health => current().map(|own| health(&own.status, now)),
            Introspection::Metrics => current().map(|own| metrics(&own.status, &own.metrics)),
        };
        node.map_or(Answer::Absent, |node| Answer::Ready(Arc::new(node)))
    }
}

fn process(home: Option<&str>) -> Node {
    Node::object([
        ("inCluster", Node::Bool(home.is_some())),
        ("namespace", Node::from(home.unwrap_or_default())),
        ("version", Node::from(env!("CARGO_PKG_VERSION"))),
    ])
}

/// Returns `.health` of an operator with this status.
pub(crate) fn health(status: &OperatorStatus, now: Timestamp) -> Node {
    let state = OperatorState::of(status);
    let time =
        |time: Option<Timestamp>| Node::from(time.map(|time| time.to_string()).unwrap_or_default());
    let uptime = status
        .uptime_seconds(now)
        .map(|seconds| duration::format(Duration::from_secs(u64::try_from(seconds).unwrap_or(0))));
    Node::object([
        ("healthy", Node::Bool(state.is_well())),
        ("state", Node::from(state.word())),
        ("status", Node::from(state.word())),
        ("phase", Node::from(status.phase.word())),
        ("started", Node::Bool(status.started_at.is_some())),
        ("pending", Node::Bool(state == OperatorState::Pending)),
        ("startedAt", time(status.started_at)),
        ("uptime", Node::from(uptime.unwrap_or_default())),
        ("queueDepth", count(status.queue_depth)),
        ("errorRate", Node::Float(status.error_rate())),
        ("consecutiveFails", count(status.consecutive_failures)),
        ("totalReconciles", count(status.passes)),
        ("resourceCount", count(status.instances)),
        ("readyCount", count(status.ready)),
        ("totalCount", count(status.instances)),
        (
            "lastError",
            Node::from(status.last_error.as_deref().unwrap_or_default()),
        ),
        ("lastReconcile", time(status.last_pass)),
        (
            "hasUnhealthyDependencies",
            Node::Bool(status.has_unhealthy_dependencies()),
        ),
    ])
}

/// Returns `.metrics` of an operator.
pub(crate) fn metrics(status: &OperatorStatus, metrics: &AutoscaleMetrics) -> Node {
    let mut node = metrics.to_node();
    if let Node::Map(map) = &mut node {
        for (name, value) in [
            ("errorRate", Node::Float(status.error_rate())),
            ("reconcileCount", count(status.passes)),
            ("errorCount", count(status.failures)),
        ] {
            map.insert(Key::from(name), value);
        }
    }
    node
}

fn count(number: impl TryInto<i64>) -> Node {
    Node::Int(number.try_into().unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_answered_is_what_the_compiler_knows() {
        let now = Timestamp::UNIX_EPOCH;
        let status = OperatorStatus::default();
        let figures = metrics(&status, &AutoscaleMetrics::default());
        let answers = [
            (Introspection::Health, health(&status, now)),
            (Introspection::Metrics, figures),
            (Introspection::Process, process(Some("orkestra-system"))),
        ];
        for (read, answer) in answers {
            let assumed = read.assumed();
            let shape = |node: &Node| -> Vec<(String, std::mem::Discriminant<Node>)> {
                let fields = node.as_map().unwrap().iter();
                fields
                    .map(|(name, value)| (name.to_string(), std::mem::discriminant(value)))
                    .collect()
            };
            assert_eq!(shape(&answer), shape(&assumed), "{read}");
        }
    }
}
