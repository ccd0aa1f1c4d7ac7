//! `.health`, `.metrics` and `.ork`: data about the operator and its process that templates and conditions read.
//! Reference: reference/language.md, §10.3.

use std::fmt;

use super::{autoscale::Metric, cross};
use orkestra_language::schema::{Kinds, Type};
use orkestra_object::value::{Key, Node};

/// A root of data about the operator itself. It comes from memory and is never stored in custom resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Introspection {
    /// `.health`: the state of the operator, and the counts of its passes.
    Health,
    /// `.metrics`: the figures of its queue, its workers and its recent passes.
    Metrics,
    /// `.ork`: the process that runs the operator.
    Process,
}

/// The type of a field of an [`Introspection`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntrospectionType {
    /// `true` or `false`.
    Boolean,
    /// An integer.
    Integer,
    /// A fraction from 0 to 1.
    Share,
    /// Text; empty if it is unknown.
    Text,
}

use IntrospectionType::{Boolean, Integer, Share, Text};

/// The fields of `.health`.
const HEALTH: [(&str, IntrospectionType); 18] = [
    ("healthy", Boolean),
    ("state", Text),
    ("status", Text),
    ("phase", Text),
    ("started", Boolean),
    ("pending", Boolean),
    ("startedAt", Text),
    ("uptime", Text),
    ("queueDepth", Integer),
    ("errorRate", Share),
    ("consecutiveFails", Integer),
    ("totalReconciles", Integer),
    ("resourceCount", Integer),
    ("readyCount", Integer),
    ("totalCount", Integer),
    ("lastError", Text),
    ("lastReconcile", Text),
    ("hasUnhealthyDependencies", Boolean),
];

/// The fields of `.metrics`, in addition to [`Metric::ALL`].
const METRICS: [(&str, IntrospectionType); 3] = [
    ("errorRate", Share),
    ("reconcileCount", Integer),
    ("errorCount", Integer),
];

/// The fields of `.ork`.
const PROCESS: [(&str, IntrospectionType); 3] = [
    ("inCluster", Boolean),
    ("namespace", Text),
    ("version", Text),
];

impl Introspection {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Health, Self::Metrics, Self::Process];

    /// The names of their roots.
    pub const ROOTS: &[&str] = &[
        Self::Health.root(),
        Self::Metrics.root(),
        Self::Process.root(),
    ];

    /// Returns the name of the root.
    pub const fn root(self) -> &'static str {
        match self {
            Self::Health => cross::HEALTH,
            Self::Metrics => cross::METRICS,
            Self::Process => "ork",
        }
    }

    /// Returns the one with this root.
    pub fn of_root(root: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.root() == root)
    }

    /// Returns its fields.
    pub fn fields(self) -> Vec<(&'static str, IntrospectionType)> {
        match self {
            Self::Health => HEALTH.to_vec(),
            Self::Metrics => {
                let metrics = Metric::ALL.map(|metric| match metric {
                    Metric::AutoscaleActive => (metric.name(), Boolean),
                    _ => (metric.name(), Integer),
                });
                metrics.into_iter().chain(METRICS).collect()
            }
            Self::Process => PROCESS.to_vec(),
        }
    }

    /// Returns its type in templates.
    pub fn template_type<'s>(self) -> Type<'s> {
        let fields = self.fields().into_iter();
        Type::of_names(fields.map(|(name, kind)| {
            let kinds = Kinds::of(&kind.zero());
            (name.to_owned(), Type::of(kinds))
        }))
    }

    /// Returns the data where no operator runs, as in `ork render`: that of a healthy operator before its first pass, out of
    /// a cluster.
    pub fn assumed(self) -> Node {
        let fields = self.fields().into_iter();
        let values = fields.map(|(name, kind)| {
            let value = match name {
                "healthy" | "started" => Node::Bool(true),
                "state" | "status" => Node::from("healthy"),
                "phase" => Node::from("Running"),
                "version" => Node::from(env!("CARGO_PKG_VERSION")),
                _ => kind.zero(),
            };
            (Key::from(name), value)
        });
        Node::Map(values.collect())
    }
}

impl fmt::Display for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.root())
    }
}

impl IntrospectionType {
    /// Returns its value where nothing is known.
    fn zero(self) -> Node {
        match self {
            Self::Boolean => Node::Bool(false),
            Self::Integer => Node::Int(0),
            Self::Share => Node::Float(0.0),
            Self::Text => Node::from(""),
        }
    }
}
