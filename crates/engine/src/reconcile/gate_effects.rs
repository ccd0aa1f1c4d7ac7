//! The side results of gates: the times at which their results may change, and comparisons that could not be evaluated.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
};

use jiff::Timestamp;

use super::{failure::Failure, reason::Reason};

/// Side results of the gates of a pass: when the first time condition changes its result, and comparisons that could not be
/// made.
#[derive(Debug, Default)]
pub struct GateEffects {
    first: Cell<Option<Timestamp>>,
    doubts: RefCell<BTreeSet<(Box<str>, String)>>,
}

impl GateEffects {
    /// Records that a result changes at that moment.
    pub fn at(&self, moment: Timestamp) {
        let first = self.first.get().map_or(moment, |known| known.min(moment));
        self.first.set(Some(first));
    }

    /// Returns the earliest moment.
    pub fn first(&self) -> Option<Timestamp> {
        self.first.get()
    }

    /// Records that the condition at `path` could not be evaluated as written, and therefore does not hold.
    pub(crate) fn doubt(&self, path: &str, message: String) {
        self.doubts.borrow_mut().insert((path.into(), message));
    }

    /// Returns the comparisons that could not be made, for reports.
    pub fn doubts(&self) -> Vec<Failure> {
        let doubts = self.doubts.borrow();
        let doubt = |(path, message): &(Box<str>, String)| Failure {
            reason: Reason::NotCompared,
            at: path.to_string(),
            message: message.clone(),
        };
        doubts.iter().map(doubt).collect()
    }
}
