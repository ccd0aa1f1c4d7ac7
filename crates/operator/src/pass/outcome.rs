//! What follows a pass: its result for the queue and for the health of the operator.

use std::time::Duration;

use orkestra_cluster::{reach::Reach, requests::ClusterError};
use orkestra_engine::reconcile::{record::CrRecord, verdict::Executed};
use orkestra_language::reasons::{Reason, RetryWhen};

use super::{Pass, failure::failure_of_cr};
use crate::shared::passes::Failed;

/// The delay before a pass is retried that waits for a permission, a name or a kind.
pub(crate) const WAIT: Duration = Duration::from_secs(30);

/// What follows a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextPass {
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
pub(crate) struct Passed {
    pub(crate) next: NextPass,
    /// The failure, for the operator's health; none if the pass succeeded.
    pub(crate) error: Option<Failed>,
}

impl Passed {
    pub(crate) fn settled() -> Self {
        Self {
            next: NextPass::Settled,
            error: None,
        }
    }

    pub(crate) fn pending() -> Self {
        Self {
            next: NextPass::Pending,
            error: None,
        }
    }

    /// True if it failed while the API server was unreachable: such a failure does not concern the custom resource.
    pub(crate) fn is_lost(&self, reach: &Reach) -> bool {
        self.next == NextPass::Retry && self.error.is_some() && !reach.is_up()
    }

    /// Returns the result of a pass that failed for this reason and has no other failures.
    pub(crate) fn failed(reason: Reason, error: impl Into<String>) -> Self {
        Self {
            next: after_failure(reason),
            error: Some(Failed {
                message: error.into(),
                reason,
                scope: reason.scope(),
            }),
        }
    }

    /// Returns the same result, retried at least slowly: what refuses the write may go without an event.
    pub(crate) fn retried(self) -> Self {
        Self {
            next: soonest(self.next, NextPass::After(WAIT)),
            ..self
        }
    }
}

/// Returns the result of a pass whose last write of the custom resource was refused with `error`. It is over if the custom
/// resource is gone; another state of it needs another pass.
pub(crate) fn refused(pass: &Pass<'_>, cr: &CrRecord, error: &ClusterError) -> Passed {
    match error {
        ClusterError::NotFound(_) => Passed::settled(),
        ClusterError::Conflict { .. } => Passed {
            next: NextPass::Retry,
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
pub(crate) fn after_failure(reason: Reason) -> NextPass {
    match reason.again() {
        RetryWhen::OnChange => NextPass::Settled,
        RetryWhen::Slowly => NextPass::After(WAIT),
        RetryWhen::Backoff => NextPass::Retry,
    }
}

/// Returns what follows, by the failures' reasons.
pub(crate) fn next(executed: &Executed, revisit: Option<Duration>) -> NextPass {
    let failures = executed.failures.iter();
    failures
        .map(|failed| after_failure(failed.reason))
        .fold(revisit.map_or(NextPass::Settled, NextPass::After), soonest)
}

pub(crate) fn soonest(a: NextPass, b: NextPass) -> NextPass {
    match (a, b) {
        (NextPass::Retry, _) | (_, NextPass::Retry) => NextPass::Retry,
        (NextPass::Again, _) | (_, NextPass::Again) => NextPass::Again,
        (NextPass::After(a), NextPass::After(b)) => NextPass::After(a.min(b)),
        (NextPass::Pending | NextPass::Settled, other)
        | (other, NextPass::Pending | NextPass::Settled) => other,
    }
}
