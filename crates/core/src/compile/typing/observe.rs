//! Types of objects and Events that trigger passes.

use super::{KnownSchemas, Typing};
use crate::{
    plan::{
        ObservePlan, OperatorPlan, ResourceType,
        observe::{KeyPlan, event_kind},
    },
    schema::Type,
};

/// Returns the type of `.events`.
pub(super) fn of_events<'s>(known: KnownSchemas<'s>, plan: &OperatorPlan) -> Type<'s> {
    let event = of_kind(known, &event_kind());
    let names = plan.observe.events.iter();
    Type::of_names(names.map(|entry| (entry.name.to_string(), event.clone())))
}

fn of_kind<'s>(known: KnownSchemas<'s>, kind: &ResourceType) -> Type<'s> {
    known.kind(kind).map_or_else(Type::any, Type::of_schema)
}

impl Typing<'_, '_> {
    /// Checks the templates that find custom resources: they read the watched object.
    pub(super) fn keys(&mut self, plan: &ObservePlan) {
        for watch in &plan.watches {
            self.key(&watch.key, &watch.kind);
        }
        for entry in &plan.events {
            self.key(&entry.key, &event_kind());
        }
    }

    fn key(&mut self, key: &KeyPlan, kind: &ResourceType) {
        let watched = of_kind(self.known, kind);
        let root = std::mem::replace(&mut self.root, watched);
        for leaf in key.leaves() {
            self.leaf(leaf, None);
        }
        self.root = root;
    }
}
