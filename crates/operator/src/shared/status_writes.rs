//! How the API server answers to writes of the status.

use parking_lot::Mutex;

/// How the API server answers to writes of the status.
#[derive(Debug, Default)]
pub(crate) struct StatusWrites(Mutex<Answers>);

#[derive(Debug, Default)]
struct Answers {
    /// The hash of the last plan whose status it accepted.
    accepted: String,
    /// Why it refuses the status, if it accepted none of that plan.
    refused: Option<String>,
}

impl StatusWrites {
    /// Records that a custom resource has the status that the plan of that hash writes. True if this ends a problem.
    pub(crate) fn accept(&self, plan: &str) -> bool {
        let mut writes = self.0.lock();
        if writes.accepted != plan {
            plan.clone_into(&mut writes.accepted);
        }
        writes.refused.take().is_some()
    }

    /// Records why a status of the plan of that hash is not written. It is a problem of the operator unless the plan's status was
    /// accepted for another custom resource. True if this is a new problem.
    pub(crate) fn refuse(&self, plan: &str, why: String) -> bool {
        let mut writes = self.0.lock();
        let is_new = writes.accepted != plan && writes.refused.as_ref() != Some(&why);
        if is_new {
            writes.refused = Some(why);
        }
        is_new
    }

    /// Returns why the API server refuses the status that the plan declares.
    pub(crate) fn problem(&self) -> Option<String> {
        self.0.lock().refused.clone()
    }
}
