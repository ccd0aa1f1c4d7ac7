//! Types of objects and Events that trigger passes.

use super::Typing;
use orkestra_plan::{
    ObservePlan, ResourceType,
    observe::{KeyPlan, event_kind},
};

impl Typing<'_, '_> {
    /// Checks the templates that find custom resources: they read the watched object.
    pub(crate) fn keys(&mut self, plan: &ObservePlan) {
        for watch in &plan.watches {
            self.key(&watch.key, &watch.kind);
        }
        for entry in &plan.events {
            self.key(&entry.key, &event_kind());
        }
    }

    fn key(&mut self, key: &KeyPlan, kind: &ResourceType) {
        let watched = self.known.objects(kind);
        let root = std::mem::replace(&mut self.root, watched);
        for leaf in key.leaves() {
            self.leaf(leaf, None);
        }
        self.root = root;
    }
}
