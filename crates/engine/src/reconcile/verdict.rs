//! The result of a pass: the action for each child, and whether the wanted state is reached.

use jiff::Timestamp;

use super::{
    behind::Awaited, differ::HeldField, failure::Failure, kstatus::Readiness, reason::Reason,
    record::Observed, takeover::TakenField,
};
use orkestra_language::api::conditions::{MESSAGE_BYTES, fit};
use orkestra_plan::ChildKey;

/// The actions of the executor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// The result for each wanted child, in the order of the intents.
    pub done: Vec<Done>,
    /// The failures of decisions and actions.
    pub failures: Vec<Failure>,
    /// Fields that other managers hold: child, field and manager.
    pub held: Vec<(ChildKey, HeldField)>,
    /// Fields that other clients had set by update and that were removed, because what is declared is refused beside them.
    pub taken: Vec<(ChildKey, TakenField)>,
    /// Children whose `spec.replicas` an autoscaler sets, and its name.
    pub autoscaled: Vec<(ChildKey, String)>,
    /// Why a custom resource that is being deleted waits: reason and message.
    pub deletion: Option<(Reason, String)>,
    /// When another pass is due even if nothing changes: a condition changes its result, or something expires.
    pub wake: Option<Timestamp>,
    /// The condition of `readyWhen` that does not hold.
    pub unmet: Option<Box<str>>,
    /// Children that were created once, are declared, and are gone.
    pub missing: Vec<ChildKey>,
    /// The comparisons that conditions could not make: they are only reported.
    pub doubts: Vec<Failure>,
    /// Why children are not ready, as far as that was looked up.
    pub awaited: Vec<Awaited>,
}

impl Executed {
    /// Schedules another pass at that moment, or earlier.
    pub fn wake_at(&mut self, moment: Option<Timestamp>) {
        self.wake = self.wake.into_iter().chain(moment).min();
    }

    /// Adds fields of other clients that the apply of a child removed.
    pub fn take(&mut self, key: &ChildKey, fields: Vec<TakenField>) {
        let fields = fields.into_iter();
        self.taken.extend(fields.map(|field| (key.clone(), field)));
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
    /// The message: every cause.
    pub message: String,
    /// The first cause, and the number of others; none if the message has one cause.
    pub first: Option<String>,
    /// Whether only a change of the input helps.
    pub stalled: bool,
}

/// Formats failures in at most so many bytes: each is named.
pub fn format_failures(failures: &[Failure], bytes: usize) -> String {
    let lines: Vec<String> = failures
        .iter()
        .map(|failure| format!("{}: {}", failure.at, failure.message))
        .collect();
    fit(&lines, bytes)
}

/// Judges a pass. `observed` is the state after its writes.
pub fn verdict(observed: &Observed, executed: &Executed) -> Verdict {
    verdict_of_writes(executed)
        .or_else(|| verdict_of_children(observed, executed))
        .or_else(|| {
            let unmet = executed.unmet.as_ref()?;
            let message = format!("waiting for {unmet}");
            Some(Verdict::not_ready(Reason::ConditionsNotMet, message))
        })
        .unwrap_or_else(|| Verdict {
            ready: true,
            reason: Reason::ReconcileSucceeded,
            message: "everything is as declared".to_owned(),
            first: None,
            stalled: false,
        })
}

impl Verdict {
    /// Returns the verdict about something that may still complete.
    fn not_ready(reason: Reason, message: String) -> Self {
        Self {
            ready: false,
            reason,
            message,
            first: None,
            stalled: false,
        }
    }

    /// Returns the same verdict, whose message has `count` causes with `first` as the first.
    fn of_causes(self, first: impl Into<String>, count: usize) -> Self {
        let more = count.saturating_sub(1);
        let first = (more > 0).then(|| format!("{}; and {more} more", first.into()));
        Self { first, ..self }
    }

    /// Returns the first cause and the number of others.
    pub fn summary(&self) -> &str {
        self.first.as_deref().unwrap_or(&self.message)
    }

    /// Returns the same verdict about something that only a change completes, if `stalled` is true.
    fn stalled_if(self, stalled: bool) -> Self {
        Self { stalled, ..self }
    }
}

/// Judges what the pass did: its failures, its deletion, and children that it does not create again.
fn verdict_of_writes(executed: &Executed) -> Option<Verdict> {
    let failures = &executed.failures;
    if let Some(worst) = failures.iter().min_by_key(|failure| {
        (
            failure.reason == Reason::WriteConflict,
            failure.reason.is_permanent(),
        )
    }) {
        let permanent = failures.iter().all(|failure| failure.reason.is_permanent());
        let message = format_failures(failures, MESSAGE_BYTES);
        let first = format_failures(std::slice::from_ref(worst), MESSAGE_BYTES);
        let verdict = Verdict::not_ready(worst.reason, message).stalled_if(permanent);
        return Some(verdict.of_causes(first, failures.len()));
    }
    if let Some((reason, message)) = &executed.deletion {
        // A late step may still complete, and the annotation ends the wait: the spec needs no change.
        return Some(Verdict::not_ready(*reason, message.clone()));
    }
    if executed.missing.is_empty() {
        return None;
    }
    let line = |key: &ChildKey| {
        format!(
            "{key} is gone, and `onCreate` does not create it again: create it, or declare it under `onReconcile`"
        )
    };
    let lines: Vec<String> = executed.missing.iter().map(line).collect();
    let message = fit(&lines, MESSAGE_BYTES);
    let verdict = Verdict::not_ready(Reason::ChildMissing, message).stalled_if(true);
    Some(verdict.of_causes(lines[0].clone(), lines.len()))
}

/// Judges the readiness of the children that the pass wrote or kept.
fn verdict_of_children(observed: &Observed, executed: &Executed) -> Option<Verdict> {
    let (mut failed, mut awaited) = (Vec::new(), Vec::new());
    for done in executed
        .done
        .iter()
        .filter(|done| done.action != Action::Deleted)
    {
        match observed.child(&done.key).map(|record| record.readiness()) {
            Some(Readiness::Failed(why)) => failed.push(format!("{}: {why}", done.key)),
            Some(Readiness::Unreadable(fault)) => failed.push(format!("{}: {fault}", done.key)),
            Some(Readiness::InProgress(_)) => {
                let mut known = executed.awaited.iter();
                let why = known.find(|one| one.child == done.key);
                let why = why.map(|one| format!(" ({})", one.why));
                awaited.push(format!("{}{}", done.key, why.unwrap_or_default()));
            }
            Some(Readiness::Current) | None => {}
        }
    }
    if !failed.is_empty() {
        let message = fit(&failed, MESSAGE_BYTES);
        let verdict = Verdict::not_ready(Reason::ChildFailed, message).stalled_if(true);
        return Some(verdict.of_causes(failed[0].clone(), failed.len()));
    }
    // Counts only as far as they were looked up: otherwise every change of a replica count would cause a write.
    (!awaited.is_empty()).then(|| {
        let message = format!("waiting for {}", awaited.join(", "));
        Verdict::not_ready(Reason::ChildrenNotReady, message)
    })
}
