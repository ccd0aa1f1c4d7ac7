//! The capacity of an operator: the declared one, or the one that an autoscaler sets instead.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use orkestra_plan::{CapacityPlan, OperatorPlan};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::queue::WorkerCount;

/// The capacity in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) workers: WorkerCount,
    /// The queue depth that counts as full; 0 disables this.
    pub(crate) max_depth: u32,
    /// The resync period; zero disables it.
    pub(crate) resync: Duration,
}

/// The capacity of one operator.
#[derive(Debug, Default)]
pub(crate) struct OperatorCapacity {
    /// Workers that take keys; 0 before they run.
    workers: AtomicUsize,
    /// The capacity that an autoscaler sets instead of the declared one.
    scaled: Mutex<Option<CapacityPlan>>,
    /// Wakes the driver: `scaled` has changed.
    pub(crate) rescale: Notify,
}

impl OperatorCapacity {
    /// Returns how many workers take keys.
    pub(crate) fn workers(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    /// Records how many workers take keys.
    pub(crate) fn set_workers(&self, count: usize) {
        self.workers.store(count, Ordering::Relaxed);
    }

    /// Sets the capacity that overrides the declared one, and notifies the driver.
    pub(crate) fn scale(&self, capacity: Option<CapacityPlan>) {
        let mut scaled = self.scaled.lock();
        if *scaled != capacity {
            *scaled = capacity;
            self.rescale.notify_one();
        }
    }

    /// True if an autoscaler's capacity is in effect.
    pub(crate) fn is_scaled(&self) -> bool {
        self.scaled.lock().is_some()
    }

    /// Returns the capacity in effect: the declared one, or the autoscaler's.
    pub(crate) fn pace(&self, plan: &OperatorPlan) -> Pace {
        let scaled = self.scaled.lock().clone().unwrap_or_default();
        let declared = WorkerCount {
            least: plan.workers,
            most: plan.most_workers,
        };
        Pace {
            workers: scaled.workers.map_or(declared, WorkerCount::from),
            max_depth: scaled.queue_depth.unwrap_or(plan.queue.max_depth),
            resync: scaled.resync.unwrap_or(plan.resync),
        }
    }
}
