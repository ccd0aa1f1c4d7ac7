//! Gates that hold back a pass, and the time of the next pass.

use super::{Gate, Leaf, OnFalsePlan};

/// The gates of a custom resource.
#[derive(Debug, Default)]
pub struct HoldPlan {
    /// The gate for enqueueing it.
    pub enqueue: Gate,
    /// The gate for reconciling it once it is queued.
    pub reconcile: Gate,
    /// The gate for its children: if closed, every block is closed.
    pub children: Gate,
    /// The action on reconciled children when that gate closes.
    pub on_false: Option<OnFalsePlan>,
}

/// A rule that requeues a custom resource after a successful pass.
#[derive(Debug)]
pub struct RequeuePlan {
    /// The delay.
    pub after: Leaf,
    /// The gate of the rule.
    pub gate: Gate,
}
