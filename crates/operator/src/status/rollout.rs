//! How the custom resources of an operator stand under the revision in force.
//!
//! A revision that breaks what an earlier one made ready is at fault, not the custom resources: see
//! [`orkestra_engine::reconcile::standing`].

use std::collections::BTreeMap;

use orkestra_engine::reconcile::reason::Reason;
use orkestra_plan::ObjectKey;

/// How many custom resources the status of a Katalog names that a revision broke.
pub const NAMED: usize = 100;

/// The end of the message about the progress of a revision.
pub const RECONCILED_UNDER: &str = "custom resources are reconciled under this revision";

/// How the custom resources that a revision has made ready stand under the revision in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// How many a revision has made ready: this one, or an earlier one.
    pub proven: usize,
    /// How many of them had no pass under the revision in force yet.
    pub pending: usize,
    /// How many of them fail under the revision in force, which did not make them ready, by reason.
    pub broken: BTreeMap<Reason, usize>,
    /// The first of those that fail, by name, at most [`NAMED`].
    pub named: Vec<ObjectKey>,
    /// The failure of one of them.
    pub example: Option<String>,
    /// `queue.failingPercent`.
    pub limit: u32,
}

impl Rollout {
    /// Returns how many custom resources the revision broke.
    pub fn broken(&self) -> usize {
        self.broken.values().sum()
    }

    /// True if the revision broke more than the permitted share.
    pub fn is_failed(&self) -> bool {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        self.broken().saturating_mul(100) > self.proven.saturating_mul(limit)
    }

    /// Returns the most frequent reason of the failures.
    pub fn reason(&self) -> Option<Reason> {
        let mut reasons: Vec<_> = self
            .broken
            .iter()
            .filter(|(_, count)| **count > 0)
            .collect();
        // Of equally frequent ones the first.
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        reasons.first().map(|(reason, _)| **reason)
    }

    /// Describes the failures: `7 of 9 custom resources that were ready under an earlier revision fail (Invalid): …`.
    pub fn failures(&self) -> Option<String> {
        let reason = self.reason()?;
        let example = self.example.as_ref();
        let example = example.map(|example| format!(": {example}"));
        Some(format!(
            "{} of {} custom resources that were ready under an earlier revision fail ({reason}){}",
            self.broken(),
            self.proven,
            example.unwrap_or_default()
        ))
    }

    /// Describes the progress of the revision.
    pub fn progress(&self) -> Option<String> {
        let done = self.proven.saturating_sub(self.pending);
        (self.pending > 0).then(|| format!("{done} of {} {RECONCILED_UNDER}", self.proven))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rollout(proven: usize, broken: &[(Reason, usize)]) -> Rollout {
        Rollout {
            proven,
            broken: broken.iter().copied().collect(),
            limit: 10,
            ..Rollout::default()
        }
    }

    #[test]
    fn a_revision_has_failed_if_more_than_the_permitted_share_fails() {
        for (proven, broken, failed) in [
            (50, 50, true),
            (50, 5, false),
            (50, 6, true),
            (1, 1, true),
            (0, 0, false),
        ] {
            let rollout = rollout(proven, &[(Reason::Invalid, broken)]);
            assert_eq!(rollout.is_failed(), failed, "{broken} of {proven}");
        }
        let any = Rollout {
            limit: 100,
            ..rollout(2, &[(Reason::Invalid, 2)])
        };
        assert!(!any.is_failed());
    }

    #[test]
    fn the_message_names_the_share_the_commonest_reason_and_an_example() {
        let mut rollout = rollout(9, &[(Reason::Denied, 2), (Reason::Invalid, 5)]);
        rollout.example = Some("east/a: no".to_owned());
        assert_eq!(
            rollout.failures().unwrap(),
            "7 of 9 custom resources that were ready under an earlier revision fail (Invalid): east/a: no"
        );
        assert_eq!(rollout.progress(), None);
        rollout.pending = 2;
        assert_eq!(
            rollout.progress().unwrap(),
            "7 of 9 custom resources are reconciled under this revision"
        );
        assert_eq!(Rollout::default().failures(), None);
    }
}
