//! A registry of the operators of one process by name, with the plan, status and metrics of each: for dependent operators,
//! autoscalers and pages.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
};

use orkestra_engine::reconcile::{autoscale::AutoscaleMetrics, record::Uid, sources::Answer};
use orkestra_object::value::Path;
use orkestra_plan::{KatalogRef, ObjectKey, OperatorPlan, Plans, cross::full_name};
use tokio::sync::watch;

use super::Context;
use crate::status::OperatorStatus;

/// The parts of a running operator that are read at the moment when they are asked for.
pub(crate) trait Live: Send + Sync {
    /// Returns its current metrics.
    fn figures(&self) -> AutoscaleMetrics;

    /// True if it has a custom resource of that uid.
    fn owns(&self, uid: &Uid) -> bool;

    /// Returns the key of a custom resource other than `key` that has that text at the path; none if it has no records yet.
    fn holder(&self, key: &ObjectKey, path: &Path, text: &str) -> Option<Answer>;
}

/// A Katalog, and one of its entries.
type Name = (KatalogRef, String);

/// The running operators; an operator is listed from its start until it stops.
pub struct Operators(watch::Sender<Arc<BTreeMap<Name, Listed>>>);

/// One operator, live: clones share the same state.
#[derive(Clone)]
pub struct Listed {
    plans: watch::Receiver<Plans>,
    status: watch::Receiver<OperatorStatus>,
    live: Weak<dyn Live>,
}

/// The plan, status and metrics of an operator at one moment.
#[derive(Clone, Debug)]
pub struct OperatorNow {
    /// Its effective plan.
    pub plan: Arc<OperatorPlan>,
    /// Its status.
    pub status: OperatorStatus,
    /// Its metrics.
    pub metrics: AutoscaleMetrics,
}

/// Keeps an operator listed until it is dropped.
pub(crate) struct ListedOperator {
    context: Arc<Context>,
    name: Name,
    status: watch::Receiver<OperatorStatus>,
}

impl Default for Operators {
    fn default() -> Self {
        Self(watch::channel(Arc::default()).0)
    }
}

impl fmt::Debug for Operators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.borrow().keys()).finish()
    }
}

impl Operators {
    /// Returns the plan, status and metrics of the operator of the entry `crd`; none if it is not running.
    pub fn snapshot(&self, katalog: &KatalogRef, crd: &str) -> Option<OperatorNow> {
        self.get(katalog, crd)?.now()
    }

    /// Returns the operator of the entry `crd`; none if it is not running.
    pub fn get(&self, katalog: &KatalogRef, crd: &str) -> Option<Listed> {
        let name = (katalog.clone(), crd.to_owned());
        self.0.borrow().get(&name).cloned()
    }

    /// Returns the operator to which `crd` refers in `katalog`: by a name in full exactly that one; by a bare name the entry there,
    /// or else the entry of that name if exactly one other Katalog of the namespace has it. Other namespaces have other authors: any
    /// of them could take a bare name.
    pub fn find(&self, katalog: &KatalogRef, crd: &str) -> Option<Listed> {
        if let Some((katalog, crd)) = full_name(crd) {
            return self.get(&katalog, crd);
        }
        let operators = self.0.borrow().clone();
        if let Some(own) = operators.get(&(katalog.clone(), crd.to_owned())) {
            return Some(own.clone());
        }
        let is_near = |other: &KatalogRef| other.namespace == katalog.namespace;
        let mut others =
            (operators.iter()).filter(|((other, name), _)| name == crd && is_near(other));
        match (others.next(), others.next()) {
            (Some((_, only)), None) => Some(only.clone()),
            _ => None,
        }
    }

    /// Returns all operators, ordered by Katalog and name.
    pub fn all(&self) -> Vec<Listed> {
        self.0.borrow().values().cloned().collect()
    }

    /// A receiver that changes whenever an operator starts or stops.
    pub(crate) fn changed(&self) -> watch::Receiver<Arc<BTreeMap<Name, Listed>>> {
        self.0.subscribe()
    }

    /// Adds an operator.
    pub(crate) fn enter(
        context: &Arc<Context>,
        plans: watch::Receiver<Plans>,
        status: watch::Receiver<OperatorStatus>,
        live: Weak<dyn Live>,
    ) -> ListedOperator {
        let name = {
            let plan = plans.borrow().effective().plan.clone();
            (plan.katalog.clone(), plan.name.clone())
        };
        let listed = Listed {
            plans,
            status: status.clone(),
            live,
        };
        let context = context.clone();
        context.operators.0.send_modify(|operators| {
            Arc::make_mut(operators).insert(name.clone(), listed);
        });
        ListedOperator {
            context,
            name,
            status,
        }
    }
}

impl Listed {
    /// Returns its current plan, status and metrics; none if it has just stopped.
    pub fn now(&self) -> Option<OperatorNow> {
        Some(OperatorNow {
            plan: self.plan(),
            status: self.status.borrow().clone(),
            metrics: self.live.upgrade()?.figures(),
        })
    }

    /// Returns the running plan, or the wanted one if none runs.
    pub fn plan(&self) -> Arc<OperatorPlan> {
        self.plans.borrow().effective().plan.clone()
    }

    /// Returns the running and the wanted plan, live.
    pub fn plans(&self) -> watch::Receiver<Plans> {
        self.plans.clone()
    }

    /// Returns the key of a custom resource other than `key` that has that text at the path, as `unique` compares it; none if
    /// the operator has no records yet.
    pub fn holder(&self, key: &ObjectKey, path: &Path, text: &str) -> Option<Answer> {
        self.live.upgrade()?.holder(key, path, text)
    }

    /// True if it has a custom resource of that uid.
    pub(crate) fn owns(&self, uid: &Uid) -> bool {
        self.live.upgrade().is_some_and(|live| live.owns(uid))
    }

    /// Returns its live status.
    pub fn status(&self) -> watch::Receiver<OperatorStatus> {
        self.status.clone()
    }
}

impl Drop for ListedOperator {
    fn drop(&mut self) {
        self.context.operators.0.send_if_modified(|operators| {
            // A successor of the same name may already be listed.
            let is_own = operators
                .get(&self.name)
                .is_some_and(|listed| listed.status.same_channel(&self.status));
            if is_own {
                Arc::make_mut(operators).remove(&self.name);
            }
            is_own
        });
    }
}
