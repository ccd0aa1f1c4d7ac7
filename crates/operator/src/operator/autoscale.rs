//! The autoscaler of one operator: takes measurements, decides, and notifies the driver.

use std::collections::BTreeMap;

use orkestra_engine::reconcile::autoscale::{AutoscaleMetrics, AutoscalerState, evaluate};
use orkestra_object::value::Key;
use orkestra_plan::{AutoscalePlan, CapacityPlan, OperatorPlan, Plans};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::shared::Shared;

/// Runs the autoscaler of the plan in force, while it has one, until `stop` is cancelled.
pub(crate) async fn follow(
    shared: &Shared,
    plans: &mut watch::Receiver<Plans>,
    stop: &CancellationToken,
) {
    let mut autoscaler = Autoscaler::default();
    loop {
        let plan = plans.borrow_and_update().effective().plan.clone();
        let again = autoscaler.turn(shared, &plan);
        let wait = async {
            match again {
                Some(at) => tokio::time::sleep(shared.context.clock.until(at)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            changed = plans.changed() => if changed.is_err() { return },
            () = wait => {}
        }
    }
}

/// The state of one operator's autoscaler. It is not kept across restarts.
#[derive(Default)]
struct Autoscaler {
    scaling: AutoscalerState,
    /// The last failure that was logged.
    reported: Option<String>,
}

impl Autoscaler {
    /// Evaluates the autoscaler once; returns when to evaluate it again.
    fn turn(&mut self, shared: &Shared, plan: &OperatorPlan) -> Option<jiff::Timestamp> {
        let before = self.scaling;
        let Some(scale) = &plan.autoscale else {
            self.scaling = AutoscalerState::default();
            self.apply(shared, plan, before, None);
            return None;
        };
        let now = shared.context.clock.now();
        let own = shared.figures();
        if own.workers == 0 {
            // Nothing is running, so there is nothing to measure.
            return Some(before.next_look(scale, None, now));
        }
        let decision = evaluate(scale, &own, &others(shared, plan, scale), now);
        let failure = decision.failure.as_ref().map(ToString::to_string);
        if failure != self.reported {
            if let Some(error) = &failure {
                tracing::warn!(operator = %plan.name, %error, "cannot evaluate the conditions of the autoscaler");
            }
            self.reported = failure;
        }
        self.scaling = before.after(scale, decision.holds, now);
        let capacity = self.scaling.is_active().then(|| scale.capacity.clone());
        self.apply(shared, plan, before, capacity);
        Some(self.scaling.next_look(scale, decision.changes_at, now))
    }

    /// Notifies the driver, and counts a change.
    fn apply(
        &self,
        shared: &Shared,
        plan: &OperatorPlan,
        before: AutoscalerState,
        capacity: Option<CapacityPlan>,
    ) {
        match (before.is_active(), self.scaling.is_active()) {
            (false, true) => {
                let other = capacity.clone().unwrap_or_default();
                let resync_seconds = other.resync.map(|resync| resync.as_secs());
                tracing::info!(operator = %plan.name, workers = other.workers, queue_depth = other.queue_depth, resync_seconds, "autoscaler overrides the capacity of the operator");
                shared.metrics.scaled(true);
            }
            (true, false) => {
                tracing::info!(operator = %plan.name, "autoscaler restores the declared capacity of the operator");
                shared.metrics.scaled(false);
            }
            _ => {}
        }
        shared.capacity.scale(capacity);
    }
}

/// Returns the metrics of other operators that the conditions refer to, for those that run.
fn others(
    shared: &Shared,
    plan: &OperatorPlan,
    scale: &AutoscalePlan,
) -> BTreeMap<Key, AutoscaleMetrics> {
    let operators = &shared.context.operators;
    let named = scale.cross.iter().filter_map(|(name, entry)| {
        let now = operators.find(&plan.katalog, entry)?.now()?;
        Some((name.clone(), now.metrics))
    });
    named.collect()
}
