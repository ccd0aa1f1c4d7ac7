//! Whether a revision made a custom resource fail: pure.
//!
//! ```text
//!              another revision                 fails
//!   Ready ───────────────────────► Earlier ───────────────► Broken
//!    ▲  │ fails                      ▲ │ fails, and its       │
//!    │  ▼                            │ ▼ author changed it    │
//!    Unproven                        │ Unproven               │
//!    ▲                               └─── another revision ───┤
//!    └──────────────────────────────────────── ready ─────────┘
//! ```
//!
//! Only a custom resource that was ready under an earlier revision can count against a revision: one that was never ready, or
//! that failed already, is its author's trouble.

use super::reason::Reason;
use orkestra_language::reasons::Class;

/// How a custom resource stands under the revision in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// No revision has made it ready, or it stopped being ready for another reason than a revision.
    #[default]
    Unproven,
    /// The revision in force made it ready, at this generation.
    Ready(Generation),
    /// An earlier revision made it ready, at this generation; the one in force has not yet.
    Earlier {
        /// The generation at which it was ready.
        at: Generation,
        /// Whether a pass under the revision in force has ended.
        seen: bool,
    },
    /// An earlier revision made it ready, at this generation; under the one in force it fails.
    Broken {
        /// The generation at which it was ready.
        at: Generation,
        /// Why it fails.
        reason: Reason,
    },
}

/// A generation of a custom resource; none where the API server counts writes of the status too.
pub type Generation = Option<i64>;

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassEnd {
    /// Everything is as declared and ready.
    Ready,
    /// It failed for this reason.
    Failed(Reason),
    /// It waits for something.
    Waiting,
    /// It says nothing about the revision: the pass is repeated.
    Inconclusive,
}

impl PassEnd {
    /// Returns the end of a pass with that verdict.
    pub fn of(reason: Reason) -> Self {
        match reason {
            Reason::Unavailable | Reason::WriteConflict => Self::Inconclusive,
            // Another client wrote what cannot be decoded.
            Reason::Unreadable => Self::Waiting,
            Reason::ReconcileSucceeded => Self::Ready,
            _ => match reason.about().class {
                Class::Transient | Class::Permanent => Self::Failed(reason),
                Class::Fine | Class::Waiting => Self::Waiting,
            },
        }
    }
}

impl Standing {
    /// Returns the standing when another revision is in force.
    #[must_use]
    pub fn under_another(self) -> Self {
        match self {
            Self::Unproven => Self::Unproven,
            Self::Ready(at) | Self::Earlier { at, .. } | Self::Broken { at, .. } => {
                Self::Earlier { at, seen: false }
            }
        }
    }

    /// Returns the standing after a pass under the revision in force, which began and ended at these generations: they differ
    /// if the pass wrote the spec.
    #[must_use]
    pub fn after(self, end: PassEnd, [began, ended]: [Generation; 2]) -> Self {
        let is_own = |at: Generation| at.is_none() || began.is_none() || at == began;
        match (end, self) {
            (PassEnd::Ready, _) => Self::Ready(ended),
            (PassEnd::Waiting, Self::Earlier { at, .. } | Self::Broken { at, .. }) => {
                let at = if is_own(at) { ended } else { at };
                Self::Earlier { at, seen: true }
            }
            (PassEnd::Inconclusive | PassEnd::Waiting, standing) => standing,
            // A change by its author, while a revision fails anyway, neither helps nor is to blame before the next revision.
            (PassEnd::Failed(reason), Self::Broken { at, .. }) => Self::Broken { at, reason },
            (PassEnd::Failed(reason), Self::Earlier { at, .. }) if is_own(at) => {
                Self::Broken { at: ended, reason }
            }
            (PassEnd::Failed(_), _) => Self::Unproven,
        }
    }

    /// True if a revision has made it ready.
    pub fn is_proven(self) -> bool {
        self != Self::Unproven
    }

    /// True if an earlier revision made it ready, and no pass under the one in force has ended.
    pub fn is_pending(self) -> bool {
        matches!(self, Self::Earlier { seen: false, .. })
    }

    /// Returns why it fails under the revision in force, if that is the revision's fault.
    pub fn broken(self) -> Option<Reason> {
        match self {
            Self::Broken { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILS: PassEnd = PassEnd::Failed(Reason::Invalid);
    const SAME: [Generation; 2] = [Some(3), Some(3)];

    fn ready() -> Standing {
        Standing::default().after(PassEnd::Ready, SAME)
    }

    #[test]
    fn what_was_ready_under_an_earlier_revision_and_fails_is_the_revisions_fault() {
        let pending = ready().under_another();
        assert!(pending.is_pending() && pending.broken().is_none());
        let broken = pending.after(FAILS, SAME);
        assert_eq!(broken.broken(), Some(Reason::Invalid));
        // It stays so until a pass succeeds, or another revision is in force.
        assert_eq!(broken.after(FAILS, SAME), broken);
        assert_eq!(broken.after(FAILS, [Some(4), Some(4)]), broken);
        assert!(broken.under_another().is_pending());
        let next = broken.under_another().after(FAILS, SAME);
        assert_eq!(next.broken(), Some(Reason::Invalid));
        assert_eq!(next.after(PassEnd::Ready, SAME), ready());
    }

    #[test]
    fn what_never_was_ready_or_fails_under_the_revision_that_made_it_ready_does_not_count() {
        let never = Standing::default().after(FAILS, SAME);
        assert_eq!(never, Standing::Unproven);
        assert_eq!(never.under_another().after(FAILS, SAME), never);
        let later = ready().after(FAILS, SAME);
        assert_eq!(later.under_another().after(FAILS, SAME), never);
    }

    #[test]
    fn a_change_by_the_author_is_the_authors_fault() {
        let changed = [Some(4), Some(4)];
        let pending = ready().under_another();
        assert_eq!(pending.after(FAILS, changed), Standing::Unproven);
        // The author changed it while a revision failed: the next revision is not to blame.
        let broken = pending.after(FAILS, SAME).after(FAILS, changed);
        let next = broken.under_another().after(FAILS, changed);
        assert_eq!(next, Standing::Unproven);
        // The operator's own write of the spec is not a change by the author.
        let normalized = pending.after(FAILS, [Some(3), Some(4)]);
        let next = normalized.under_another().after(FAILS, changed);
        assert!(next.broken().is_some());
        // Without a status subresource the generation says nothing.
        let unknown = Standing::default().after(PassEnd::Ready, [None, None]);
        let broken = unknown.under_another().after(FAILS, [None, None]);
        assert!(broken.broken().is_some());
    }

    #[test]
    fn a_pass_that_waits_is_seen_and_one_that_is_repeated_is_not() {
        let pending = ready().under_another();
        let waits = pending.after(PassEnd::of(Reason::ChildrenNotReady), SAME);
        assert!(!waits.is_pending() && waits.broken().is_none());
        assert!(waits.after(FAILS, SAME).broken().is_some());
        for reason in [Reason::Unavailable, Reason::WriteConflict] {
            assert_eq!(pending.after(PassEnd::of(reason), SAME), pending);
        }
        assert_eq!(PassEnd::of(Reason::ReconcileSucceeded), PassEnd::Ready);
        assert_eq!(
            PassEnd::of(Reason::ChildFailed),
            PassEnd::Failed(Reason::ChildFailed)
        );
    }
}
