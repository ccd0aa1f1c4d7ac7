//! The operators of one process by name: what each follows, says and measures, for those that depend on it, scale by it
//! or show it.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
};

use orkestra_core::{
    plan::{KatalogRef, OperatorPlan, Plans},
    reconcile::autoscale::Figures,
};
use tokio::sync::watch;

use super::{OperatorStatus, shared::Shared};

/// A Katalog, and an entry of it.
type Name = (KatalogRef, String);

/// The running operators; an operator is in it from its start until it stops.
pub struct Operators(watch::Sender<Arc<BTreeMap<Name, Listed>>>);

/// One operator, live: clones see the same.
#[derive(Clone)]
pub struct Listed {
    plans: watch::Receiver<Plans>,
    status: watch::Receiver<OperatorStatus>,
    shared: Weak<Shared>,
}

/// What an operator follows, says and measures at one moment.
#[derive(Clone, Debug)]
pub struct OperatorNow {
    /// What it goes by.
    pub plan: Arc<OperatorPlan>,
    /// What it says of itself.
    pub status: OperatorStatus,
    /// What it measures of itself.
    pub metrics: Figures,
}

/// Keeps an operator listed until it is dropped.
pub(super) struct Entered {
    context: Arc<super::context::Context>,
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
    /// What the operator of the entry `crd` says and measures now; none where it does not run.
    pub fn snapshot(&self, katalog: &KatalogRef, crd: &str) -> Option<OperatorNow> {
        self.get(katalog, crd)?.now()
    }

    /// The operator of the entry `crd`; none where it does not run.
    pub fn get(&self, katalog: &KatalogRef, crd: &str) -> Option<Listed> {
        let name = (katalog.clone(), crd.to_owned());
        self.0.borrow().get(&name).cloned()
    }

    /// The operator that `crd` means in `katalog`: the entry there, else the one other Katalog's that has the name.
    pub fn find(&self, katalog: &KatalogRef, crd: &str) -> Option<Listed> {
        let operators = self.0.borrow().clone();
        if let Some(own) = operators.get(&(katalog.clone(), crd.to_owned())) {
            return Some(own.clone());
        }
        let mut others = operators.iter().filter(|((_, name), _)| name == crd);
        match (others.next(), others.next()) {
            (Some((_, only)), None) => Some(only.clone()),
            _ => None,
        }
    }

    /// All of them, in the order of their Katalogs and names.
    pub fn all(&self) -> Vec<Listed> {
        self.0.borrow().values().cloned().collect()
    }

    /// Changes whenever an operator starts or stops.
    pub(super) fn changed(&self) -> watch::Receiver<Arc<BTreeMap<Name, Listed>>> {
        self.0.subscribe()
    }

    /// Lists an operator.
    pub(super) fn enter(shared: &Arc<Shared>, status: watch::Receiver<OperatorStatus>) -> Entered {
        let name = {
            let plan = shared.plan();
            (plan.katalog.clone(), plan.name.clone())
        };
        let listed = Listed {
            plans: shared.plans.subscribe(),
            status: status.clone(),
            shared: Arc::downgrade(shared),
        };
        let context = shared.context.clone();
        context.operators.0.send_modify(|operators| {
            Arc::make_mut(operators).insert(name.clone(), listed);
        });
        Entered {
            context,
            name,
            status,
        }
    }
}

impl Listed {
    /// What it says and measures now; none when it has just stopped.
    pub fn now(&self) -> Option<OperatorNow> {
        Some(OperatorNow {
            plan: self.plan(),
            status: self.status.borrow().clone(),
            metrics: self.shared.upgrade()?.figures(),
        })
    }

    /// What it goes by: the plan that it runs, or the wanted one while it runs none.
    pub fn plan(&self) -> Arc<OperatorPlan> {
        self.plans.borrow().effective().plan.clone()
    }

    /// What it runs and is to run, as that changes.
    pub fn plans(&self) -> watch::Receiver<Plans> {
        self.plans.clone()
    }

    /// What it says of itself.
    pub fn status(&self) -> watch::Receiver<OperatorStatus> {
        self.status.clone()
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.context.operators.0.send_if_modified(|operators| {
            // A successor of the same name may be listed already.
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
