//! Objects and Events that trigger passes. One watch for each kind, scope and selector in the process.
//!
//! ```text
//!  plan.observe ── find: how each kind is served ──► Observed, a part of what is bound
//!                                                      │ relevant change ── lead ──► custom resources are queued
//!                                                      │ first list completed late ──► all are
//!  pass: Read::Event ──────────────────────────────────┘──► the latest Event, from the records
//! ```
//!
//! Objects of the first list are no changes, since every custom resource has a pass when the operator starts. If the first
//! list completes later than that, because a kind or a permission was missing, all custom resources have a pass again: no
//! trigger in between is lost. Changes while a watch was interrupted show in the next list.

mod entry;
mod latest;

use std::sync::Arc;

use orkestra_cluster::{
    requests::{Scope, Served},
    watch::{MemoryUse, WatchProblem, WatchState, Watched},
};
use orkestra_engine::reconcile::{
    observe::Lead,
    record::{CrRecord, Uid},
    sources::Answer,
};
use orkestra_object::value::{Key, Map, Node, Path};
use orkestra_plan::{
    GroupKind, OperatorPlan, ResourceType,
    observe::{KeyPlan, event_kind},
};
use tokio::sync::watch;

pub(crate) use self::entry::Wake;
use self::entry::{EntryRef, ObservedWatch};
use crate::context::{Context, Crds};

/// How the kinds of the plan's watches are served, in order; none if a kind is not served.
pub(crate) type Kinds = Vec<Option<Served>>;

/// The watches for the plan of one operator.
#[derive(Default)]
pub(crate) struct Observed {
    /// In the order of the plan.
    watches: Vec<Object>,
    events: Vec<Arc<ObservedWatch>>,
}

/// Objects that trigger passes.
struct Object {
    kind: ResourceType,
    served: Option<Served>,
    entry: Option<Arc<ObservedWatch>>,
}

/// Resolves how the kinds that `plan` watches are served: from the CRDs, from `before`, from discovery. A kind without an
/// answer counts as not served: the operator runs without it, and looks again.
pub(crate) async fn find(
    context: &Context,
    plan: &OperatorPlan,
    before: Option<&Observed>,
) -> Kinds {
    let mut found = Kinds::new();
    for watch in &plan.observe.watches {
        let kind = watch.kind.group_kind();
        let defined = context.crds.get(&kind).is_some();
        let known = before.and_then(|before| before.served(&watch.kind));
        let known = known.filter(|_| !defined);
        let served = match known {
            Some(served) => Some(served.clone()),
            None => match context.look_up(&kind, Some(&watch.kind)).await {
                Ok(served) => served,
                Err(error) => {
                    tracing::warn!(operator = %plan.name, %kind, %error, "cannot discover an observed kind");
                    None
                }
            },
        };
        found.push(served);
    }
    found
}

impl Observed {
    /// Starts the watches of `plan`; `kinds` says how its kinds are served, `namespaced` whether its custom resources are
    /// namespaced. `wake` is called for each relevant change.
    pub(crate) fn start(
        context: &Context,
        plan: &Arc<OperatorPlan>,
        (kinds, namespaced): (Kinds, bool),
        wake: &Wake,
    ) -> Self {
        let entry = |of, kind: ResourceType, watched, paths: &[Path]| {
            ObservedWatch::start(
                context,
                wake,
                plan,
                (of, kind, namespaced),
                (watched, paths),
            )
        };
        let watches = plan.observe.watches.iter().zip(kinds).enumerate();
        let watches = watches.map(|(index, (watch, served))| Object {
            kind: watch.kind.clone(),
            entry: served.clone().map(|served| {
                let namespace = watch.namespace.as_deref().filter(|_| served.namespaced);
                let scope = Scope {
                    namespace: namespace.map(str::to_owned),
                    selector: None,
                    fields: watch.field_selector(),
                };
                let kind = watch.kind.clone();
                entry(
                    EntryRef::Watch(index),
                    kind,
                    Watched { served, scope },
                    &watch.kept_paths(),
                )
            }),
            served,
        });
        let events = plan.observe.events.iter().enumerate();
        let events = events.map(|(index, events)| {
            let scope = Scope {
                namespace: events.namespace().map(str::to_owned),
                selector: None,
                fields: events.field_selector(),
            };
            let served = Served::events();
            entry(
                EntryRef::Events(index),
                event_kind(),
                Watched { served, scope },
                &events.kept_paths(),
            )
        });
        Self {
            watches: watches.collect(),
            events: events.collect(),
        }
    }

    /// Returns how a watched kind is served.
    fn served(&self, kind: &ResourceType) -> Option<&Served> {
        let mut watches = self.watches.iter();
        watches.find(|watch| watch.kind == *kind)?.served.as_ref()
    }

    /// True if the kinds are served as `kinds` says.
    pub(crate) fn are(&self, kinds: &Kinds) -> bool {
        self.kinds().eq(kinds)
    }

    /// True if the kinds of both are served alike.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.kinds().eq(other.kinds())
    }

    fn kinds(&self) -> impl Iterator<Item = &Option<Served>> {
        self.watches.iter().map(|watch| &watch.served)
    }

    /// True if the CRDs differ from what is watched; a kind that is served again is looked up now.
    pub(crate) fn follow(&self, crds: &Crds) -> bool {
        let mut differs = false;
        for watch in &self.watches {
            let kind = watch.kind.group_kind();
            if crds.get(&kind).is_none() {
                continue;
            }
            let served = crds.served(&kind, &watch.kind.version);
            differs |= served != watch.served;
            let entry = watch.entry.as_ref();
            if let Some(entry) = entry.filter(|entry| entry.is_not_served()) {
                entry.watch.poke();
            }
        }
        differs
    }

    /// Returns the kinds that are not served.
    pub(crate) fn absent(&self) -> impl Iterator<Item = GroupKind> {
        let absent = self.watches.iter().filter(|watch| watch.served.is_none());
        absent.map(|watch| watch.kind.group_kind())
    }

    fn entries(&self) -> impl Iterator<Item = &Arc<ObservedWatch>> {
        let watches = self.watches.iter().filter_map(|watch| watch.entry.as_ref());
        watches.chain(&self.events)
    }

    /// Returns when everything was read once, or cannot be read.
    pub(crate) async fn looked_at(&self) {
        for entry in self.entries() {
            entry.watch.looked_at().await;
        }
    }

    /// Returns the states of the watches.
    pub(crate) fn states(&self) -> Vec<watch::Receiver<WatchState>> {
        self.entries().map(|entry| entry.watch.state()).collect()
    }

    /// Returns the problems of the watches.
    pub(crate) fn problems(&self) -> Vec<(GroupKind, WatchProblem)> {
        let problems = self.entries().filter_map(|entry| entry.watch.problem());
        problems.collect()
    }

    /// Returns which of the watches have completed their initial list, and whether Events can be read at the moment.
    pub(crate) fn source_states(&self) -> (Vec<bool>, Vec<Result<(), String>>) {
        let listed = self.entries().map(|entry| entry.is_listed());
        let events = self.events.iter().map(|entry| entry.watch.readable());
        (listed.collect(), events.collect())
    }

    /// Returns the number of records held.
    pub(crate) fn held(&self) -> MemoryUse {
        self.entries().map(|entry| entry.watch.store().held()).sum()
    }

    /// Returns the latest Event of the custom resource for the entry of that name; `about` returns the leads of the custom
    /// resource itself and its children.
    pub(crate) fn latest_event(
        &self,
        cr: &CrRecord,
        name: &Key,
        about: impl FnOnce() -> Vec<(Lead, Option<Uid>)>,
    ) -> Answer {
        let mut entries = self.events.iter();
        let entry = entries.find(|entry| entry.events().is_some_and(|events| events.name == *name));
        let Some(entry) = entry else {
            return Answer::Absent;
        };
        if let Err(why) = entry.watch.readable() {
            return Answer::Unavailable(why.into());
        }
        let leads = if matches!(entry.key(), KeyPlan::About) {
            about()
        } else {
            by_name(cr).into()
        };
        let store = entry.watch.store();
        let latest = entry.latest.of(&leads, |key| store.get(key));
        latest.map_or(Answer::Absent, |seen| {
            Answer::Ready(Arc::new(seen.view.clone()))
        })
    }

    /// Returns the objects of that kind that lead to the custom resource, by name; `leads` are those of the custom resource
    /// itself and its children. Objects that name their owner count in the namespaces that it `reaches`.
    pub(crate) fn watched(
        &self,
        cr: &CrRecord,
        kind: &GroupKind,
        mut leads: Vec<(Lead, Option<Uid>)>,
        reaches: impl Fn(Option<&str>) -> bool,
    ) -> Answer {
        leads.push((Lead::Uid(cr.id.uid.clone()), None));
        leads.extend(by_name(cr));
        let mut found = Map::default();
        let watches = self.watches.iter();
        for watch in watches.filter(|watch| watch.kind.group_kind() == *kind) {
            let Some(entry) = &watch.entry else {
                continue;
            };
            if let Err(why) = entry.watch.readable() {
                return Answer::Unavailable(why.into());
            }
            let store = entry.watch.store();
            let by_owner = matches!(entry.key(), KeyPlan::Owner);
            let mut keys = entry.latest.all(&leads);
            keys.retain(|key| !by_owner || reaches(key.namespace.as_deref()));
            for key in keys {
                if let Some(seen) = store.get(&key) {
                    found.insert(key.name, seen.view.clone());
                }
            }
        }
        Answer::Ready(Arc::new(Node::Map(found)))
    }
}

/// Returns the leads of objects that name the custom resource: in its namespace, and cluster-scoped ones.
fn by_name(cr: &CrRecord) -> [(Lead, Option<Uid>); 2] {
    let key = &cr.id.key;
    [key.namespace.clone(), None].map(|namespace| (Lead::Name(namespace, key.name.clone()), None))
}
