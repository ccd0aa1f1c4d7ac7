//! External calls of an operator.

mod token;

use std::time::Duration;

use super::{Gate, Leaf, Moments, PlanPlace};
use orkestra_object::value::Key;

pub use token::{Piece, Retry};

/// The stage at which a call is made. The calls of a stage run before the step that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Before the gates of a pass.
    PreReconcile,
    /// The gate for enqueueing a custom resource.
    EnqueueGate,
    /// The gate for reconciling a queued custom resource.
    ReconcileGate,
    /// The mutation rules.
    Mutation,
    /// The validation rules.
    Validation,
    /// Children: the calls of the operatorBox, then those of its blocks.
    Box,
}

/// One call of an operator.
#[derive(Debug)]
pub struct CallPlan {
    /// The key under `.external`, unique among the calls of one import.
    pub name: Key,
    /// Its path in the Katalog, or in the Motif of `import`.
    pub path: PlanPlace,
    /// The import that declares it, as an index into [`OperatorPlan::imports`](super::OperatorPlan::imports); `None` for
    /// the Katalog.
    pub import: Option<usize>,
    /// The stage at which it is made.
    pub stage: Stage,
    /// The block that declares it, as an index into [`OperatorPlan::blocks`](super::OperatorPlan::blocks); `None` runs
    /// before all blocks.
    pub block: Option<usize>,
    /// The moments at which it is made.
    pub moments: Moments,
    /// The gate of the call.
    pub gate: Gate,
    /// The HTTP method, in upper case.
    pub method: &'static str,
    /// The URL.
    pub url: Leaf,
    /// Header names and values, sorted.
    pub headers: Box<[(Box<str>, Leaf)]>,
    /// The request body.
    pub body: Option<Leaf>,
    /// The bearer token.
    pub token: Option<TokenPlan>,
    /// The only status that counts as success; `None` accepts all but 4xx and 5xx.
    pub expected_status: Option<u16>,
    /// True if the pass continues when the call fails.
    pub continue_on_error: bool,
    /// The timeout of one attempt.
    pub timeout: Duration,
    /// The retry policy.
    pub retry: Retry,
    /// How long a successful response is cached.
    pub cache_for: Option<Duration>,
}

/// A bearer token.
#[derive(Debug)]
pub enum TokenPlan {
    /// A template.
    Template(Leaf),
    /// Text and environment variables of the runtime.
    Literal(Box<[Piece]>),
    /// A key of a Secret.
    Secret {
        /// Its namespace; `None` is the custom resource's.
        namespace: Option<Box<str>>,
        /// Its name.
        name: Box<str>,
        /// The key in its data.
        key: Box<str>,
    },
}

impl TokenPlan {
    /// Returns the expression that renders it, if it is one.
    pub fn template(&self) -> Option<&Leaf> {
        match self {
            Self::Template(leaf) => Some(leaf),
            Self::Literal(_)
            | Self::Secret {
                namespace: _,
                name: _,
                key: _,
            } => None,
        }
    }
}
