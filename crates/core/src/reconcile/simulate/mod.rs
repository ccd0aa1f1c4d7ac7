//! Passes over a world in memory: what `ork simulate` runs.
//!
//! ```text
//!  Setup ──► World ── cycle 1..n: for each subject  observe ── step ── execute ── status ──► ops, failures
//!              ▲                                                  │
//!              └── outcomes of workloads, changes of users ◄──────┘   at the end of each cycle
//!  Run ── expect ──► Checks: what was expected, and what was seen
//! ```
//!
//! The pass is the operators' own; only what surrounds it is modelled. An object that is applied becomes exactly what is
//! rendered, with the fields that every API server adds (uid, generation, creation time). Not modelled: other field
//! managers and their conflicts, defaulting and validation of children, admission of children, garbage collection, controllers beyond
//! [`Outcome`], `enrich`, Events, autoscalers and `dependsOn`. Of a custom resource that is gone, the children go at once.
//!
//! Equal setups give equal runs: time is that of the setup, and random notes draw from a seed that the custom resource's
//! kind, namespace and name make.

mod actor;
mod compare;
mod expect;
mod leave;
mod outcome;
mod stored;
mod world;
mod writer;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

pub(crate) use compare::compare;
pub use expect::{Check, check};
pub use world::plural;

use super::record::Malformed;
use crate::{
    api::simulate::{Change, Outcome},
    plan::{ChildKey, CrdVersion, GroupKind, ObjectKey, OperatorPlan},
    value::Node,
};

/// A custom resource that is reconciled.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// Its operator.
    pub plan: &'a OperatorPlan,
    /// Its definition's version; without it nothing is defaulted and its status takes anything.
    pub version: Option<&'a CrdVersion>,
    /// Kinds of which definitions say whether they live in namespaces, beyond what the plan knows.
    pub scopes: BTreeMap<GroupKind, bool>,
    /// The object, with `apiVersion`, `kind` and `metadata.name`.
    pub cr: Node,
}

/// A world, and what happens in it.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The custom resources that are reconciled, in this order.
    pub subjects: Vec<Subject<'a>>,
    /// Other objects that exist from the start.
    pub objects: Vec<Node>,
    /// Answers to calls, by the call's name, as maps of `status`, `body` and `error`.
    pub calls: BTreeMap<String, Node>,
    /// Whether calls without an answer get an empty one; else they fail.
    pub skips_calls: bool,
    /// What becomes of workloads.
    pub outcomes: &'a [Outcome],
    /// What users change, each with the position of its subject.
    pub changes: Vec<(usize, &'a Change)>,
    /// How many cycles run.
    pub cycles: u32,
    /// The moment of the first cycle.
    pub now: Timestamp,
    /// The time between two cycles.
    pub interval: Duration,
}

/// What was done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// A child was created.
    Create,
    /// A child was changed.
    Update,
    /// A child was deleted.
    Delete,
    /// The custom resource was changed.
    Patch,
}

impl Verb {
    /// As documents write it.
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
    /// Position of the subject whose pass did it.
    pub subject: usize,
    /// What was done.
    pub verb: Verb,
    /// The plural of the kind.
    pub resource: String,
    /// The API group, empty for the core group.
    pub group: String,
    /// Whether it was done to the status subresource.
    pub is_status: bool,
    /// Namespace and name.
    pub object: ObjectKey,
}

/// `create deployments.apps shop/web`, `patch websites.demo.example/status shop/web`.
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

/// Something that failed in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Position of the subject.
    pub subject: usize,
    /// The reason, as in conditions.
    pub reason: &'static str,
    /// Where: an object, or a place in the Katalog.
    pub at: String,
    /// What is wrong.
    pub message: String,
}

/// What one cycle came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cycle {
    /// What was done, in order.
    pub ops: Vec<Op>,
    /// What failed.
    pub faults: Vec<Fault>,
    /// Subjects that `preReconcile` held back.
    pub held: Vec<usize>,
    /// What happened at its end: `Deployment.apps shop/web is ready`.
    pub outcomes: Vec<String>,
}

/// An object after the last cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    /// Which one.
    pub key: ChildKey,
    /// The whole object.
    pub object: Node,
    /// Whether it is ready, as kstatus judges it.
    pub is_ready: bool,
    /// Position of the subject that it belongs to, where it is a child.
    pub subject: Option<usize>,
}

/// A simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The cycles, from the first.
    pub cycles: Vec<Cycle>,
    /// The custom resources after the last cycle, one a subject.
    pub resources: Vec<Node>,
    /// All other objects after the last cycle, sorted.
    pub objects: Vec<Left>,
}

impl Run {
    /// The first cycle that does nothing for any of `subjects` and after which nothing is done for them, from 1.
    pub fn steady_at(&self, subjects: &[usize]) -> Option<u32> {
        let is_busy = |cycle: &Cycle| (cycle.ops.iter()).any(|op| subjects.contains(&op.subject));
        let last = self.cycles.iter().rposition(is_busy);
        let first = last.map_or(1, |last| last + 2);
        (first <= self.cycles.len()).then(|| u32::try_from(first).unwrap_or(u32::MAX))
    }
}

/// Runs a simulation.
///
/// # Errors
/// [`Malformed`] when an object has no name, kind or version.
pub fn simulate(setup: Setup<'_>) -> Result<Run, Malformed> {
    let (cycles, interval) = (setup.cycles, setup.interval);
    let mut world = world::World::new(setup)?;
    let mut run = Run::default();
    for number in 1..=cycles {
        run.cycles.push(world.cycle(number)?);
        world.wait(interval);
    }
    world.finish(&mut run);
    Ok(run)
}
