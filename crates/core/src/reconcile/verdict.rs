//! What a pass came to: what was done about each child, and whether that is all that was wanted.

use jiff::Timestamp;

use super::{differ::Held, kstatus::Readiness, reason::Reason, record::Observed, step::Failure};
use crate::{
    api::conditions::{MESSAGE_BYTES, fit},
    plan::ChildKey,
};

/// What the executor did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// What became of each child that is wanted, in the order of the intents.
    pub done: Vec<Done>,
    /// What failed, in deciding or in doing.
    pub failures: Vec<Failure>,
    /// Fields that others hold: child, field and manager.
    pub held: Vec<(ChildKey, Held)>,
    /// Children whose `spec.replicas` an autoscaler sets, and its name.
    pub autoscaled: Vec<(ChildKey, String)>,
    /// What the end of a custom resource that is being deleted waits for, and why.
    pub ending: Option<(Reason, String)>,
    /// When another pass is due though nothing changes: a condition turns, something expires.
    pub wake: Option<Timestamp>,
    /// The condition of `readyWhen` that does not hold.
    pub unmet: Option<Box<str>>,
    /// Children that were created once, are declared, and are gone.
    pub missing: Vec<ChildKey>,
    /// What conditions could not compare: people are told, nothing else follows.
    pub doubts: Vec<Failure>,
}

impl Executed {
    /// Another pass is due then, if not before.
    pub fn wake_at(&mut self, moment: Option<Timestamp>) {
        self.wake = self.wake.into_iter().chain(moment).min();
    }

    /// Takes in what conditions could not compare, each once.
    pub fn doubt(&mut self, doubts: Vec<Failure>) {
        for doubt in doubts {
            if !self.doubts.contains(&doubt) {
                self.doubts.push(doubt);
            }
        }
    }
}

/// What became of one child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Which one.
    pub key: ChildKey,
    /// What was done.
    pub action: Action,
}

/// What was done about a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing: it is as it shall be.
    Unchanged,
    /// It was made.
    Created,
    /// It was changed, because what is declared changed.
    Updated,
    /// It was deleted and created again, because an immutable field of it changed.
    Recreated,
    /// It was changed back.
    Repaired,
    /// It was deleted.
    Deleted,
}

/// How far the custom resource has come, in one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether everything is as declared and ready.
    pub ready: bool,
    /// Why, or why not.
    pub reason: Reason,
    /// The same for people.
    pub message: String,
    /// Whether only a change of the input helps.
    pub stalled: bool,
}

/// What failures say together, in at most so many bytes: each is named.
pub fn told(failures: &[Failure], bytes: usize) -> String {
    let lines: Vec<String> = failures
        .iter()
        .map(|failure| format!("{}: {}", failure.at, failure.message))
        .collect();
    fit(&lines, bytes)
}

/// Judges a pass. `observed` is what stands after its writes.
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
        // Without counts: a message that moves with every replica would be a write for each.
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
