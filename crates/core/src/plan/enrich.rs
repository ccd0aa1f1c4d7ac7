//! Data that is added to children.

use std::collections::BTreeSet;

use super::{Gate, GroupKind, OperatorPlan, Reads};
use crate::{
    api::EnrichTarget,
    enrich::{Addition, Relation},
    value::PathStep,
};

/// An addition to children.
#[derive(Debug)]
pub struct EnrichPlan {
    /// The addition.
    pub target: EnrichTarget,
    /// The gate of the addition.
    pub gate: Gate,
}

/// True if templates read the addition from children of that kind.
pub(crate) fn is_read(addition: &Addition, reads: &Reads, kind: &GroupKind) -> bool {
    let paths = reads.of_children(kind);
    addition.is_of(kind)
        && paths.iter().any(|path| match path.steps().first() {
            Some(PathStep::Field(first)) => &**first == addition.key,
            Some(PathStep::Index(_)) => false,
            None => true,
        })
}

impl OperatorPlan {
    /// Returns the additions that templates read, each with the kind of the children.
    pub fn additions_read(&self) -> impl Iterator<Item = (&'static Addition, &GroupKind)> {
        let declared = self
            .enrich
            .iter()
            .flat_map(|entry| entry.target.additions());
        declared.flat_map(|addition| {
            let kinds = self.reads.children.keys();
            let kinds = kinds.filter(|kind| is_read(addition, &self.reads, kind));
            kinds.map(move |kind| (addition, kind))
        })
    }

    /// Returns the relations that are watched for additions to children.
    pub fn relations(&self) -> BTreeSet<Relation> {
        let read = self.additions_read();
        read.filter_map(|(addition, _)| addition.source.relation())
            .collect()
    }
}
