//! Recent changes, as an operator records them while another process leads.
//!
//! A new leader queues every custom resource, since the progress of its predecessor is unknown. Those that changed during the
//! time that a failover takes come first: the predecessor may have died before it saw them.

use std::{collections::HashMap, time::Duration};

use orkestra_plan::ObjectKey;
use tokio::time::Instant;

use super::{Shared, bound_plan::BoundPlan};
use crate::queue::Lane;

/// How long a change counts as recent: longer than an unrenewed lease stays with its holder, plus the holder's last passes.
const RECENT: Duration = Duration::from_secs(15);
/// How many changes are recorded before old ones are swept.
const FEW: usize = 256;

/// Custom resources that changed recently.
#[derive(Debug, Default)]
pub(crate) struct RecentChanges {
    changed: HashMap<ObjectKey, Instant>,
    sweep_above: usize,
}

impl RecentChanges {
    fn note(&mut self, key: ObjectKey, now: Instant) {
        self.changed.insert(key, now);
        if self.changed.len() > self.sweep_above.max(FEW) {
            self.changed.retain(|_, at| is_recent(*at, now));
            self.changed.shrink_to_fit();
            // Doubled, so that the cost of sweeps per change stays constant.
            self.sweep_above = self.changed.len() * 2;
        }
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.changed.remove(key);
    }

    fn has(&self, key: &ObjectKey, now: Instant) -> bool {
        self.changed.get(key).is_some_and(|at| is_recent(*at, now))
    }
}

fn is_recent(at: Instant, now: Instant) -> bool {
    now.saturating_duration_since(at) < RECENT
}

impl Shared {
    /// Records changes from now on, instead of queueing them.
    pub(crate) fn stand_by(&self) {
        self.recent.lock().get_or_insert_default();
    }

    /// Queues changes from now on, and all existing custom resources, recently changed ones first.
    pub(crate) fn take_over(&self, bound: &BoundPlan) {
        let Some(recent) = self.recent.lock().take() else {
            return;
        };
        let now = Instant::now();
        for key in bound
            .cr_keys()
            .into_iter()
            .chain(bound.all_formerly_managed())
        {
            let lane = if recent.has(&key, now) {
                Lane::Changed
            } else {
                Lane::Resync
            };
            self.enqueue(key, lane);
        }
    }

    /// Records a change if another process leads; true if so.
    pub(crate) fn remembers(&self, key: &ObjectKey, lane: Lane) -> bool {
        let mut recent = self.recent.lock();
        let recent = recent.as_mut();
        let stands_by = recent.is_some();
        if let Some(recent) = recent
            && lane == Lane::Changed
        {
            recent.note(key.clone(), Instant::now());
        }
        stands_by
    }

    /// Removes a deleted custom resource.
    pub(crate) fn forget_recent(&self, key: &ObjectKey) {
        if let Some(recent) = self.recent.lock().as_mut() {
            recent.forget(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            namespace: Some("marsh".into()),
            name: name.into(),
        }
    }

    #[test]
    fn only_what_changed_within_a_take_over_is_recent() {
        let start = Instant::now();
        let later = start + Duration::from_secs(10);
        let mut recent = RecentChanges::default();
        recent.note(key("old"), start);
        recent.note(key("new"), later);
        recent.note(key("gone"), later);
        recent.forget(&key("gone"));
        let now = start + RECENT;
        assert!(!recent.has(&key("old"), now));
        assert!(recent.has(&key("new"), now));
        assert!(!recent.has(&key("gone"), now) && !recent.has(&key("never"), now));
        // The key has changed again.
        recent.note(key("old"), now);
        assert!(recent.has(&key("old"), now));
    }

    #[test]
    fn old_changes_take_no_memory() {
        let start = Instant::now();
        let mut recent = RecentChanges::default();
        for second in 0..3_000_u64 {
            for one in 0..4 {
                let name = format!("p{second}-{one}");
                recent.note(key(&name), start + Duration::from_secs(second));
            }
        }
        assert!(recent.changed.len() <= FEW + 1, "{}", recent.changed.len());
        assert!(recent.has(&key("p2999-0"), start + Duration::from_mins(50)));
    }
}
