//! What follows a pass: its result for the queue and for the health of the operator.

use std::time::Duration;

use orkestra_cluster::{reach::Reach, wire::WireError};
use orkestra_core::{
    reasons::{Reason, RetryWhen},
    reconcile::{record::CrRecord, verdict::Executed},
};

use super::{Pass, failure::failure_of_cr};
use crate::runtime::shared::passes::Failed;

/// The delay before a pass is retried that waits for a permission, a name or a kind.
pub(super) const WAIT: Duration = Duration::from_secs(30);

/// What follows a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum Next {
    /// Nothing, until something changes.
    Settled,
    /// The same pass again, once the data it waits for is available.
    Pending,
    /// Another pass at once: this one changed fields that it reads.
    Again,
    /// A retry with backoff.
    Retry,
    /// A retry after that delay.
    After(Duration),
}

/// The result of a pass.
pub(in crate::runtime) struct Passed {
    pub(in crate::runtime) next: Next,
    /// The failure, for the operator's health; none if the pass succeeded.
    pub(in crate::runtime) error: Option<Failed>,
}

impl Passed {
    pub(in crate::runtime) fn settled() -> Self {
        Self {
            next: Next::Settled,
            error: None,
        }
    }

    pub(in crate::runtime) fn pending() -> Self {
        Self {
            next: Next::Pending,
            error: None,
        }
    }

    /// True if it failed while the API server was unreachable: such a failure does not concern the custom resource.
    pub(in crate::runtime) fn is_lost(&self, reach: &Reach) -> bool {
        self.next == Next::Retry && self.error.is_some() && !reach.is_up()
    }

    /// Returns the result of a pass that failed for this reason and has no other failures.
    pub(in crate::runtime) fn failed(reason: Reason, error: impl Into<String>) -> Self {
        Self {
            next: after_failure(reason),
            error: Some(Failed {
                message: error.into(),
                scope: reason.scope(),
            }),
        }
    }

    /// Returns the same result, retried at least slowly: what refuses the write may go without an event.
    pub(in crate::runtime) fn retried(self) -> Self {
        Self {
            next: soonest(self.next, Next::After(WAIT)),
            ..self
        }
    }
}

/// Returns the result of a pass whose last write of the custom resource was refused with `error`. It is over if the custom
/// resource is gone; another state of it needs another pass.
pub(in crate::runtime) fn refused(pass: &Pass<'_>, cr: &CrRecord, error: &WireError) -> Passed {
    match error {
        WireError::NotFound(_) => Passed::settled(),
        WireError::Conflict { .. } => Passed {
            next: Next::Retry,
            error: None,
        },
        _ => {
            let failed = failure_of_cr(pass.bound, cr, error);
            Passed::failed(failed.reason, failed.message).retried()
        }
    }
}

/// Returns what follows a failure for this reason: a permanent one waits for another input, a missing permission until it is
/// granted.
pub(super) fn after_failure(reason: Reason) -> Next {
    match reason.again() {
        RetryWhen::OnChange => Next::Settled,
        RetryWhen::Slowly => Next::After(WAIT),
        RetryWhen::Backoff => Next::Retry,
    }
}

/// Returns what follows, by the failures' reasons.
pub(in crate::runtime) fn next(executed: &Executed, revisit: Option<Duration>) -> Next {
    let failures = executed.failures.iter();
    failures
        .map(|failed| after_failure(failed.reason))
        .fold(revisit.map_or(Next::Settled, Next::After), soonest)
}

pub(in crate::runtime) fn soonest(a: Next, b: Next) -> Next {
    match (a, b) {
        (Next::Retry, _) | (_, Next::Retry) => Next::Retry,
        (Next::Again, _) | (_, Next::Again) => Next::Again,
        (Next::After(a), Next::After(b)) => Next::After(a.min(b)),
        (Next::Pending | Next::Settled, other) | (other, Next::Pending | Next::Settled) => other,
    }
}
