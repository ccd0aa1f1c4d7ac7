//! The result of a pass: the action for each child, and whether the wanted state is reached.

use jiff::Timestamp;

use super::{differ::Held, kstatus::Readiness, reason::Reason, record::Observed, step::Failure};
use crate::{
    api::conditions::{MESSAGE_BYTES, fit},
    plan::ChildKey,
};

/// The actions of the executor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// The result for each wanted child, in the order of the intents.
    pub done: Vec<Done>,
    /// The failures of decisions and actions.
    pub failures: Vec<Failure>,
    /// Fields that other managers hold: child, field and manager.
    pub held: Vec<(ChildKey, Held)>,
    /// Children whose `spec.replicas` an autoscaler sets, and its name.
    pub autoscaled: Vec<(ChildKey, String)>,
    /// Why a custom resource that is being deleted waits: reason and message.
    pub ending: Option<(Reason, String)>,
    /// When another pass is due even if nothing changes: a condition changes its result, or something expires.
    pub wake: Option<Timestamp>,
    /// The condition of `readyWhen` that does not hold.
    pub unmet: Option<Box<str>>,
    /// Children that were created once, are declared, and are gone.
    pub missing: Vec<ChildKey>,
    /// The comparisons that conditions could not make: they are only reported.
    pub doubts: Vec<Failure>,
}

impl Executed {
    /// Schedules another pass at that moment, or earlier.
    pub fn wake_at(&mut self, moment: Option<Timestamp>) {
        self.wake = self.wake.into_iter().chain(moment).min();
    }

    /// Adds comparisons that conditions could not make, each once.
    pub fn doubt(&mut self, doubts: Vec<Failure>) {
        for doubt in doubts {
            if !self.doubts.contains(&doubt) {
                self.doubts.push(doubt);
            }
        }
    }
}

/// The result for one child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Its key.
    pub key: ChildKey,
    /// The action.
    pub action: Action,
}

/// The action for a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing: it is as wanted.
    Unchanged,
    /// It was created.
    Created,
    /// It was changed, because its declaration changed.
    Updated,
    /// It was deleted and created again, because one of its immutable fields changed.
    Recreated,
    /// Its drift was corrected.
    Repaired,
    /// It was deleted.
    Deleted,
}

/// The readiness of the custom resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether everything is as declared and ready.
    pub ready: bool,
    /// The reason.
    pub reason: Reason,
    /// The message.
    pub message: String,
    /// Whether only a change of the input helps.
    pub stalled: bool,
}

/// Formats failures in at most so many bytes: each is named.
pub fn told(failures: &[Failure], bytes: usize) -> String {
    let lines: Vec<String> = failures
        .iter()
        .map(|failure| format!("{}: {}", failure.at, failure.message))
        .collect();
    fit(&lines, bytes)
}

/// Judges a pass. `observed` is the state after its writes.
pub fn verdict(observed: &Observed, executed: &Executed) -> Verdict {
    if let Some(worst) = executed.failures.iter().min_by_key(|failure| {
        (
            failure.reason == Reason::WriteConflict,
            failure.reason.is_permanent(),
        )
    }) {
        let permanent = executed
            .failures
            .iter()
            .all(|failure| failure.reason.is_permanent());
        return Verdict {
            ready: false,
            reason: worst.reason,
            message: told(&executed.failures, MESSAGE_BYTES),
            stalled: permanent,
        };
    }
    if let Some((reason, message)) = &executed.ending {
        return Verdict {
            ready: false,
            reason: *reason,
            message: message.clone(),
            // A late step may still complete, and the annotation ends the wait: the spec needs no change.
            stalled: false,
        };
    }
    if !executed.missing.is_empty() {
        let line = |key: &ChildKey| {
            format!(
                "{key} is gone, and `onCreate` does not create it again: create it, or declare `reconcile: true`"
            )
        };
        let lines: Vec<String> = executed.missing.iter().map(line).collect();
        return Verdict {
            ready: false,
            reason: Reason::ChildMissing,
            message: fit(&lines, MESSAGE_BYTES),
            stalled: true,
        };
    }
    let (mut failed, mut awaited) = (Vec::new(), Vec::new());
    for done in executed
        .done
        .iter()
        .filter(|done| done.action != Action::Deleted)
    {
        match observed.child(&done.key).map(|record| record.readiness()) {
            Some(Readiness::Failed(why)) => failed.push(format!("{}: {why}", done.key)),
            Some(Readiness::Unreadable(fault)) => failed.push(format!("{}: {fault}", done.key)),
            Some(Readiness::InProgress(_)) => awaited.push(done.key.to_string()),
            Some(Readiness::Current) | None => {}
        }
    }
    if !failed.is_empty() {
        return Verdict {
            ready: false,
            reason: Reason::ChildFailed,
            message: fit(&failed, MESSAGE_BYTES),
            stalled: true,
        };
    }
    if !awaited.is_empty() {
        // Without counts: otherwise every change of a replica count would cause a write.
        let message = format!("waiting for {}", awaited.join(", "));
        return Verdict {
            ready: false,
            reason: Reason::ChildrenNotReady,
            message,
            stalled: false,
        };
    }
    if let Some(unmet) = &executed.unmet {
        return Verdict {
            ready: false,
            reason: Reason::ConditionsNotMet,
            message: format!("waiting for {unmet}"),
            stalled: false,
        };
    }
    Verdict {
        ready: true,
        reason: Reason::ReconcileSucceeded,
        message: "everything is as declared".to_owned(),
        stalled: false,
    }
}
