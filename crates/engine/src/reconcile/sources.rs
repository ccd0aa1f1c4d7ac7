//! The reads of a pass other than the custom resource and its children: a pass requests them, and runs again with the results.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::{calls::CallRequest, related::RelatedRead};
use orkestra_object::value::{Key, Node, Path};
use orkestra_plan::{ChildKey, GroupKind, introspection::Introspection};

/// Data that a pass needs and that its records do not hold. Equal reads have one answer in a pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// An object of another owner, which a child copies, refers to or is created in. It comes without metadata; a Namespace
    /// comes with its labels.
    Object(ChildKey),
    /// An external call; [`answered`](super::external::answered) creates its answer.
    Call(Box<CallRequest>),
    /// A certificate signed by its own authority: a map of [`CERTIFICATE_PARTS`] to text in PEM.
    Certificate(Certificate),
    /// The key of another custom resource of the operator that has this text at this path.
    Same(Path, Box<str>),
    /// The parts of a custom resource of another operator that the plan reads.
    Cross(CrossRead),
    /// The status and metrics of the operator that an entry of `cross` names.
    Operator(Key),
    /// The objects from which an addition to a child is made: a list of their records.
    Related(RelatedRead),
    /// The latest Event of the custom resource for the entry of `observe.events` of that name.
    Event(Key),
    /// The objects of that kind that lead to the custom resource by `observe.watch`: a map by name of their records.
    Watched(GroupKind),
    /// Data about the operator itself and its process.
    Introspection(Introspection),
}

impl Read {
    /// True if its answer may change and its readers must be queued then. Each pass makes its calls again, and an Event
    /// triggers a pass itself. Figures of the operator change with each pass, so that they trigger none; its state triggers
    /// a pass of all.
    pub fn may_change(&self) -> bool {
        match self {
            Self::Object(_)
            | Self::Certificate(_)
            | Self::Same(..)
            | Self::Cross(_)
            | Self::Operator(_)
            | Self::Related(_) => true,
            Self::Call(_) | Self::Event(_) | Self::Watched(_) | Self::Introspection(_) => false,
        }
    }
}

/// A custom resource of another operator that a pass reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CrossRead {
    /// The entry of [`OperatorPlan::cross`](orkestra_plan::OperatorPlan::cross), by its name.
    pub name: Key,
    /// Its namespace; none for cluster-scoped resources, and all namespaces for a selection by labels.
    pub namespace: Option<Key>,
    /// The selection.
    pub by: CrossBy,
}

/// Selects the custom resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrossBy {
    /// By name.
    Name(Key),
    /// The first with these labels.
    Labels(BTreeMap<Key, Box<str>>),
}

/// The subject of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Certificate {
    /// The Secret that holds it: each gets its own.
    pub holder: ChildKey,
    /// The common name, at most 64 characters.
    pub common_name: Option<String>,
    /// DNS names, including wildcards, and addresses.
    pub hosts: Vec<String>,
    /// The start of its validity.
    pub not_before: Timestamp,
    /// The end of its validity.
    pub not_after: Timestamp,
}

/// The parts of a certificate: chain, private key and the authority's certificate. Source: Kubernetes, "TLS Secrets".
pub const CERTIFICATE_PARTS: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// The result of a read. It is kept for the whole pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The requested data.
    Ready(Arc<Node>),
    /// It does not exist.
    Absent,
    /// It is unknown whether it exists, with the reason.
    Unavailable(Box<str>),
}

/// The maximum number of read rounds in a pass; further reads are unavailable.
pub const ROUNDS: usize = 8;

/// The answers of a pass so far.
pub type Answers = BTreeMap<Read, Answer>;
