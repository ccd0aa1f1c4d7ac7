//! Custom resources of other operators, watched by the same informers as the operator's own, so that a read makes no request
//! to the API server.
//!
//! ```text
//!  plan.cross ── resolve: which operator, which kind ──► Targets, a part of what is bound
//!                                                          │ change of a record ──► its readers are queued
//!                                                          │ other readability or health ──► all are queued
//!  pass: Read::Cross, Read::Operator ── noted as read ─────┘──► answer from the records
//! ```

use std::{collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use jiff::Timestamp;
use orkestra_cluster::{
    requests::{Scope, Served},
    watch::{Handle, WatchProblem, WatchState, Watched},
};
use orkestra_engine::reconcile::{
    record::CrRecord,
    sources::{Answer, CrossBy, CrossRead},
};
use orkestra_object::value::{Key, Node, Path, project};
use orkestra_plan::{
    GroupKind, ObjectKey, OperatorPlan, ResourceType,
    cross::{CrossPlan, CrossTarget, HEALTH, METRICS, full_name, label_path},
};

use super::{
    introspection, next,
    readers::{Readers, queue_cross},
};
use crate::{
    context::{Context, operators::Listed},
    status::health::OperatorState,
};

/// The current target of an entry of `cross`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResolvedTarget {
    /// The owner of the resource is unknown, or its resources are not read, with the reason.
    Nobody(String),
    /// The kind is not served, so no resource exists.
    NotServed(GroupKind),
    /// The kind.
    Served(Served),
}

/// The targets of the entries of a plan, by name.
pub(crate) type Resolved = BTreeMap<Key, ResolvedTarget>;

/// The targets that the entries of one plan read.
#[derive(Default)]
pub(crate) struct Targets(BTreeMap<Key, Target>);

struct Target {
    found: ResolvedTarget,
    watch: Option<Handle<CrRecord>>,
    operator: Option<Listed>,
    reads: Box<[Path]>,
    reads_health: bool,
}

/// The state of a target whose change affects all its readers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetState {
    readable: Result<bool, String>,
    kind: Option<ResourceType>,
    health: Option<OperatorState>,
}

/// Resolves the entries of `plan`.
pub(crate) fn resolve(context: &Context, plan: &OperatorPlan) -> Resolved {
    let entries = plan.cross.iter();
    entries
        .map(|entry| (entry.name.clone(), find(context, plan, entry).0))
        .collect()
}

fn find(
    context: &Context,
    plan: &OperatorPlan,
    entry: &CrossPlan,
) -> (ResolvedTarget, Option<Listed>) {
    let nobody = |why: String| (ResolvedTarget::Nobody(why), None);
    let (kind, operator) = match &entry.target {
        CrossTarget::Own(name, kind) => (kind.clone(), context.operators.get(&plan.katalog, name)),
        CrossTarget::Other(name) => match context.operators.find(&plan.katalog, name) {
            Some(operator) if !permits(&operator, plan) => {
                return nobody(format!(
                    "the Katalog of `{name}` does not permit it: other namespaces need `crossAccess: true` in its entry, and with \
                     `false` no other Katalog reads it"
                ));
            }
            Some(operator) => (operator.plan().resource.clone(), Some(operator)),
            None if full_name(name).is_some() => {
                return nobody(format!("there is no operator `{name}`"));
            }
            None => {
                return nobody(format!(
                    "there is no operator named `{name}` in namespace `{}`, or there are several; name one of another Katalog in \
                     full: `namespace/katalog/crd`",
                    plan.katalog.namespace
                ));
            }
        },
        CrossTarget::Labels(labels) => {
            let mut all = context.operators.all();
            all.retain(|operator| {
                let resource = operator.plan().resource.clone();
                permits(operator, plan) && has_labels(context, &resource, labels)
            });
            match <[Listed; 1]>::try_from(all) {
                Ok([operator]) => (operator.plan().resource.clone(), Some(operator)),
                Err(all) if all.is_empty() => {
                    return nobody("no operator's definition has these labels".to_owned());
                }
                Err(_) => {
                    return nobody(
                        "the definitions of several operators have these labels".to_owned(),
                    );
                }
            }
        }
    };
    let (group_kind, version) = (kind.group_kind(), &kind.version);
    if let Some(why) = entry.target.refusal(&group_kind) {
        // The operator is kept: a change of its kind is noticed by its plan.
        return (ResolvedTarget::Nobody(why.to_owned()), operator);
    }
    let served = crate::served::built_in(&group_kind, version)
        .or_else(|| context.crds.served(&group_kind, version));
    let found = served.map_or_else(
        || ResolvedTarget::NotServed(kind.group_kind()),
        ResolvedTarget::Served,
    );
    (found, operator)
}

/// True if the operators of the Katalog of `reader` may read the custom resources of an operator.
fn permits(operator: &Listed, reader: &OperatorPlan) -> bool {
    let owner = operator.plan();
    owner.cross_access.permits(&owner.katalog, &reader.katalog)
}

fn has_labels(
    context: &Context,
    kind: &ResourceType,
    labels: &BTreeMap<Box<str>, Box<str>>,
) -> bool {
    let Some(crd) = context.crds.get(&kind.group_kind()) else {
        return false;
    };
    labels
        .iter()
        .all(|(key, value)| crd.labels.get(key) == Some(value))
}

impl Targets {
    /// Starts the watches that `plan` reads.
    pub(crate) fn start(context: &Context, readers: &Arc<Readers>, plan: &OperatorPlan) -> Self {
        let target = |entry: &CrossPlan| {
            let (found, operator) = find(context, plan, entry);
            let watch = match &found {
                ResolvedTarget::Served(served) => {
                    let watched = Watched {
                        served: served.clone(),
                        scope: Scope::default(),
                    };
                    let subscriber = queue_cross(Arc::downgrade(readers), entry);
                    Some(
                        context
                            .informers
                            .shared(watched, &entry.kept_paths(), Some(subscriber)),
                    )
                }
                ResolvedTarget::Nobody(_) | ResolvedTarget::NotServed(_) => None,
            };
            Target {
                found,
                watch,
                operator,
                reads: entry.reads.clone().into(),
                reads_health: entry.reads_health,
            }
        };
        let entries = plan.cross.iter();
        Self(
            entries
                .map(|entry| (entry.name.clone(), target(entry)))
                .collect(),
        )
    }

    /// True if the entries still resolve to these targets.
    pub(crate) fn are(&self, resolved: &Resolved) -> bool {
        let known = self.0.iter().map(|(name, target)| (name, &target.found));
        known.eq(resolved)
    }

    /// True if both read the same targets.
    pub(crate) fn same(&self, other: &Self) -> bool {
        let known = |targets: &Self| -> Resolved {
            let all = targets.0.iter();
            all.map(|(name, target)| (name.clone(), target.found.clone()))
                .collect()
        };
        known(self) == known(other)
    }

    /// Returns when every target was read once, or cannot be read.
    pub(crate) async fn looked_at(&self) {
        for target in self.0.values() {
            if let Some(watch) = &target.watch {
                watch.looked_at().await;
            }
        }
    }

    /// Returns the states whose change affects all readers.
    pub(crate) fn source_states(&self) -> BTreeMap<Key, TargetState> {
        let state = |target: &Target| TargetState {
            readable: target.readable(),
            kind: (target.operator.as_ref()).map(|operator| operator.plan().resource.clone()),
            health: (target.operator.as_ref())
                .filter(|_| target.reads_health)
                .and_then(Listed::now)
                .map(|now| OperatorState::of(&now.status)),
        };
        let all = self.0.iter();
        all.map(|(name, target)| (name.clone(), state(target)))
            .collect()
    }

    /// Returns futures that complete when [`Targets::source_states`] may have changed.
    pub(crate) fn changes(&self) -> Vec<BoxFuture<'static, ()>> {
        let mut changes = Vec::new();
        for target in self.0.values() {
            changes.extend((target.watch.as_ref()).map(|watch| next(watch.state())));
            if let Some(operator) = &target.operator {
                changes.push(next(operator.plans()));
                if target.reads_health {
                    changes.push(next(operator.status()));
                }
            }
        }
        changes
    }

    /// Returns the problems that prevent reading targets.
    pub(crate) fn problems(&self) -> Vec<(GroupKind, WatchProblem)> {
        let watches = self.0.values().filter_map(|target| target.watch.as_ref());
        watches.filter_map(Handle::problem).collect()
    }
}

impl Target {
    /// True if objects may exist; an error if that is unknown.
    fn readable(&self) -> Result<bool, String> {
        let watch = match (&self.found, &self.watch) {
            (ResolvedTarget::Nobody(why), _) => return Err(why.clone()),
            (ResolvedTarget::Served(_), Some(watch)) => watch,
            _ => return Ok(false),
        };
        match &*watch.state().borrow() {
            // The data read before stays valid as far as is known.
            WatchState::Synced
            | WatchState::Failing {
                problem: WatchProblem::Unavailable { .. },
                was_synced: true,
            } => Ok(true),
            WatchState::Starting => Err("it is being read for the first time".to_owned()),
            WatchState::Failing {
                problem: WatchProblem::NotServed,
                ..
            } => Ok(false),
            WatchState::Failing {
                problem:
                    WatchProblem::Unavailable { message, .. } | WatchProblem::Forbidden { message },
                ..
            } => Err(message.clone()),
        }
    }

    /// Selects the requested resource among those that were read.
    fn choose(&self, read: &CrossRead) -> Result<Option<Arc<CrRecord>>, String> {
        let (ResolvedTarget::Served(served), Some(watch)) = (&self.found, &self.watch) else {
            return Ok(None);
        };
        let store = watch.store();
        match &read.by {
            CrossBy::Name(name) => {
                if served.namespaced && read.namespace.is_none() {
                    return Err(format!(
                        "{} is namespaced: set `selector.namespace`",
                        served.kind
                    ));
                }
                Ok(store.get(&object_key(served, read.namespace.as_deref(), name)))
            }
            CrossBy::Labels(labels) => {
                let namespace = read.namespace.as_deref().filter(|_| served.namespaced);
                let mut all = store.snapshot();
                all.retain(|record| {
                    namespace
                        .is_none_or(|wanted| record.id.key.namespace.as_deref() == Some(wanted))
                        && labels.iter().all(|(key, value)| {
                            let label = record.view.at(&label_path(key));
                            label.and_then(Node::as_str) == Some(value)
                        })
                });
                let order = |record: &Arc<CrRecord>| {
                    let key = &record.id.key;
                    (key.name.clone(), key.namespace.clone())
                };
                Ok(all.into_iter().min_by_key(order))
            }
        }
    }
}

fn object_key(served: &Served, namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey {
        namespace: namespace.filter(|_| served.namespaced).map(Into::into),
        name: name.into(),
    }
}

/// Returns the custom resource that a pass asks for.
pub(crate) fn read(targets: &Targets, read: &CrossRead) -> Answer {
    let Some(target) = targets.0.get(&read.name) else {
        return Answer::Unavailable("the plan does not read it".into());
    };
    let chosen = match target.readable() {
        Ok(true) => target.choose(read),
        Ok(false) => Ok(None),
        Err(why) => Err(why),
    };
    match chosen {
        Ok(Some(record)) if record.unread.is_some() => {
            let why = record.unread.as_deref().map(ToString::to_string);
            Answer::Unavailable(why.unwrap_or_default().into())
        }
        Ok(Some(record)) => Answer::Ready(Arc::new(project(&record.view, &target.reads))),
        Ok(None) => Answer::Absent,
        Err(why) => Answer::Unavailable(why.into()),
    }
}

/// Returns the health and metrics of the operator of the entry of that name.
pub(crate) fn operator(targets: &Targets, name: &Key, now: Timestamp) -> Answer {
    let target = targets.0.get(name);
    let operator = target.and_then(|target| target.operator.as_ref());
    match operator.and_then(Listed::now) {
        Some(current) => Answer::Ready(Arc::new(Node::object([
            (HEALTH, introspection::health(&current.status, now)),
            (
                METRICS,
                introspection::metrics(&current.status, &current.metrics),
            ),
        ]))),
        None => Answer::Absent,
    }
}
