//! Passes over a simulated cluster in memory, for `ork simulate`.
//!
//! ```text
//!  SimulatedSetup ──► World ── cycle 1..n: for each subject  observe ── step ── execute ── status ──► ops, failures
//!                       ▲                                                  │
//!                       └── outcomes of workloads, changes of users ◄──────┘   at the end of each cycle
//!  SimulatedRun ── expect ──► Checks: expected and actual results
//! ```
//!
//! The pass is that of a real operator; only its environment is modelled. An applied object is exactly the rendered object, with
//! the fields that every API server adds (uid, generation, creation time). Not modelled: other field managers and their conflicts,
//! defaulting and validation of children, admission of children, garbage collection, controllers beyond [`Outcome`], `enrich`,
//! Events, autoscalers and `dependsOn`. The children of a deleted custom resource are deleted immediately.
//!
//! Equal setups give equal runs: the setup provides the time, and random notes draw from a seed derived from the custom
//! resource's kind, namespace and name.

mod actor;
mod compare;
mod expect;
mod leave;
mod outcome;
mod pass;
mod stored;
mod world;
mod writer;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

pub use compare::compare;
pub use expect::{Check, check};
pub use world::plural;

use super::metadata::Malformed;
use orkestra_language::api::simulate::{Outcome, UserChange};
use orkestra_object::value::Node;
use orkestra_plan::{ChildKey, GroupKind, ObjectKey, OperatorPlan, definitions::CrdVersion};

/// A custom resource to reconcile.
#[derive(Clone, Debug)]
pub struct SimulatedResource<'a> {
    /// Its operator.
    pub plan: &'a OperatorPlan,
    /// The version of its CRD; without it no defaults are set and its status accepts anything.
    pub version: Option<&'a CrdVersion>,
    /// Whether kinds are namespaced, from their CRDs, in addition to what the plan knows.
    pub scopes: BTreeMap<GroupKind, bool>,
    /// The object, with `apiVersion`, `kind` and `metadata.name`.
    pub cr: Node,
}

/// A simulated cluster, and the events in it.
#[derive(Clone, Debug)]
pub struct SimulatedSetup<'a> {
    /// The custom resources to reconcile, in this order.
    pub subjects: Vec<SimulatedResource<'a>>,
    /// Other objects that exist from the start.
    pub objects: Vec<Node>,
    /// Answers to calls, by the call's name, as maps of `status`, `body` and `error`.
    pub calls: BTreeMap<String, Node>,
    /// Whether calls without an answer get an empty one; else they fail.
    pub skips_calls: bool,
    /// The outcomes of workloads.
    pub outcomes: &'a [Outcome],
    /// The changes by users, each with the index of its subject.
    pub changes: Vec<(usize, &'a UserChange)>,
    /// The number of cycles.
    pub cycles: u32,
    /// The time of the first cycle.
    pub now: Timestamp,
    /// The time between two cycles.
    pub interval: Duration,
}

/// The verb of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// A child was created.
    Create,
    /// A child was changed.
    Update,
    /// A child was deleted, or the custom resource by its own operator.
    Delete,
    /// The custom resource was changed.
    Patch,
}

impl Verb {
    /// Returns the word in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Patch => "patch",
        }
    }
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// The index of the subject whose pass did it.
    pub subject: usize,
    /// The verb.
    pub verb: Verb,
    /// The plural of the kind.
    pub resource: String,
    /// The API group, empty for the core group.
    pub group: String,
    /// Whether it applies to the status subresource.
    pub is_status: bool,
    /// Namespace and name.
    pub object: ObjectKey,
}

/// Formats `create deployments.apps shop/web`, `patch websites.demo.example/status shop/web`.
impl std::fmt::Display for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb.name(), self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if self.is_status {
            f.write_str("/status")?;
        }
        write!(f, " {}", self.object)
    }
}

/// A failure in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedFault {
    /// The index of the subject.
    pub subject: usize,
    /// The reason, as in conditions.
    pub reason: &'static str,
    /// An object, or a path in the Katalog.
    pub at: String,
    /// The problem.
    pub message: String,
}

/// The result of one cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimulatedCycle {
    /// The operations, in order.
    pub ops: Vec<Op>,
    /// The failures.
    pub faults: Vec<SimulatedFault>,
    /// Subjects that `preReconcile` held back.
    pub held: Vec<usize>,
    /// The outcomes at its end: `Deployment.apps shop/web is ready`.
    pub outcomes: Vec<String>,
}

/// An object after the last cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct FinalObject {
    /// Its key.
    pub key: ChildKey,
    /// The whole object.
    pub object: Node,
    /// Whether it is ready by the rules of kstatus.
    pub is_ready: bool,
    /// The index of the subject that owns it, if it is a child.
    pub subject: Option<usize>,
}

/// A simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SimulatedRun {
    /// The cycles, from the first.
    pub cycles: Vec<SimulatedCycle>,
    /// The custom resources after the last cycle, one per subject.
    pub resources: Vec<Node>,
    /// All other objects after the last cycle, sorted.
    pub objects: Vec<FinalObject>,
}

impl SimulatedRun {
    /// Returns the first cycle, from 1, in which nothing is done for any of `subjects`, and after which nothing is done for
    /// them.
    pub fn steady_at(&self, subjects: &[usize]) -> Option<u32> {
        let is_busy =
            |cycle: &SimulatedCycle| (cycle.ops.iter()).any(|op| subjects.contains(&op.subject));
        let last = self.cycles.iter().rposition(is_busy);
        let first = last.map_or(1, |last| last + 2);
        (first <= self.cycles.len()).then(|| u32::try_from(first).unwrap_or(u32::MAX))
    }
}

/// Runs a simulation.
///
/// # Errors
/// [`Malformed`] if an object has no name, kind or version.
pub fn simulate(setup: SimulatedSetup<'_>) -> Result<SimulatedRun, Malformed> {
    let (cycles, interval) = (setup.cycles, setup.interval);
    let mut world = world::World::new(setup)?;
    let mut run = SimulatedRun::default();
    for number in 1..=cycles {
        run.cycles.push(world.cycle(number)?);
        world.wait(interval);
    }
    world.finish(&mut run);
    Ok(run)
}
