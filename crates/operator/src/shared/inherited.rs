//! What the predecessor of an operator wrote about the custom resources that its revision broke.

use std::collections::BTreeSet;

use orkestra_engine::reconcile::reason::Reason;
use orkestra_language::api::FailingInstances;
use orkestra_plan::ObjectKey;

/// The custom resources that a revision broke, as the predecessor wrote them.
pub(crate) struct InheritedFailures<'a> {
    named: BTreeSet<&'a str>,
    /// How many more there are than are named.
    more: usize,
    reason: Reason,
}

impl<'a> InheritedFailures<'a> {
    /// Reads the row.
    pub(crate) fn of(failing: &'a FailingInstances) -> Self {
        let known = Reason::ALL.iter();
        let mut known = known.filter(|reason| reason.as_str() == failing.reason);
        let all = usize::try_from(failing.count).unwrap_or_default();
        Self {
            named: failing.names.iter().map(String::as_str).collect(),
            more: all.saturating_sub(failing.names.len()),
            reason: known.next().copied().unwrap_or(Reason::Invalid),
        }
    }

    /// Returns why the custom resource fails, if it is one of them. Of those that are not named, the first that are not ready
    /// count: never more than there were.
    pub(crate) fn take(&mut self, key: &ObjectKey, is_not_ready: bool) -> Option<Reason> {
        if self.named.contains(&*key.to_string()) {
            return Some(self.reason);
        }
        let counts = is_not_ready && self.more > 0;
        self.more -= usize::from(counts);
        counts.then_some(self.reason)
    }
}
