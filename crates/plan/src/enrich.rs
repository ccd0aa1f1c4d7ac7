//! `enrich`: data that is added to children when templates read them.

use super::{Gate, GroupKind, Reads};
use orkestra_language::{api::EnrichTarget, enrich::Addition};
use orkestra_object::value::PathStep;

/// An addition to children.
#[derive(Debug)]
pub struct EnrichPlan {
    /// The addition.
    pub target: EnrichTarget,
    /// The gate of the addition.
    pub gate: Gate,
}

/// True if templates read the addition from children of that kind.
pub fn is_read(addition: &Addition, reads: &Reads, kind: &GroupKind) -> bool {
    let paths = reads.of_children(kind);
    addition.is_of(kind)
        && paths.iter().any(|path| match path.steps().first() {
            Some(PathStep::Field(first)) => &**first == addition.key,
            Some(PathStep::Index(_)) => false,
            None => true,
        })
}
