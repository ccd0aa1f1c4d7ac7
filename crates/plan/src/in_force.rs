//! The plan that an operator runs, and the plan that it is supposed to run.
//!
//! ```text
//!  want(n+1) ──► running n, wanted n+1 ── all that n+1 requires is available ──► run(n+1): both are n+1
//! ```
//!
//! [`Plans`] is the only type that holds both plans, so that no report can confuse them.

use std::sync::Arc;

use super::OperatorPlan;

/// The plan of one operator, and the Katalog revision that declares it.
#[derive(Clone, Debug)]
pub struct Revised {
    /// The plan.
    pub plan: Arc<OperatorPlan>,
    /// The name of the revision.
    pub revision: Arc<str>,
}

impl PartialEq for Revised {
    /// Plans are equal if they are the same allocation: an entry that a new revision does not change keeps its plan.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.plan, &other.plan) && self.revision == other.revision
    }
}

/// The plan that an operator runs, and the plan that it should run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plans {
    running: Option<Revised>,
    wanted: Revised,
}

impl Plans {
    /// Creates the plans of an operator that runs nothing yet.
    pub fn new(wanted: Revised) -> Self {
        Self {
            running: None,
            wanted,
        }
    }

    /// Sets the wanted plan. If the operator already runs that plan, only the name of the revision changes, and the plan is
    /// in force at once.
    pub fn want(&mut self, wanted: Revised) {
        if let Some(running) = &mut self.running
            && Arc::ptr_eq(&running.plan, &wanted.plan)
        {
            *running = wanted.clone();
        }
        self.wanted = wanted;
    }

    /// Sets the running plan. A plan that was wanted under an earlier name of its revision is recorded under the current
    /// one.
    pub fn run(&mut self, plan: Revised) {
        let is_wanted = Arc::ptr_eq(&plan.plan, &self.wanted.plan);
        self.running = Some(if is_wanted { self.wanted.clone() } else { plan });
    }

    /// Records that the operator stopped.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// Returns the plan that passes use; `None` while the operator runs nothing.
    pub fn running(&self) -> Option<&Revised> {
        self.running.as_ref()
    }

    /// Returns the plan that the newest accepted revision declares.
    pub fn wanted(&self) -> &Revised {
        &self.wanted
    }

    /// True if the operator runs the wanted plan.
    pub fn is_current(&self) -> bool {
        self.running.as_ref() == Some(&self.wanted)
    }

    /// Returns the plan that applies: the running one, or the wanted one while none runs.
    pub fn effective(&self) -> &Revised {
        self.running.as_ref().unwrap_or(&self.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Arc<OperatorPlan> {
        Arc::new(OperatorPlan::of_nothing())
    }

    fn revised(plan: &Arc<OperatorPlan>, revision: &str) -> Revised {
        Revised {
            plan: Arc::clone(plan),
            revision: revision.into(),
        }
    }

    #[test]
    fn a_wanted_plan_is_in_force_only_once_it_runs() {
        let (old, new) = (plan(), plan());
        let mut plans = Plans::new(revised(&old, "r-1"));
        assert!(!plans.is_current() && plans.running().is_none());
        assert_eq!(&*plans.effective().revision, "r-1");
        plans.run(revised(&old, "r-1"));
        assert!(plans.is_current());

        plans.want(revised(&new, "r-2"));
        assert!(!plans.is_current());
        assert_eq!(plans.running(), Some(&revised(&old, "r-1")));
        assert_eq!(plans.wanted(), &revised(&new, "r-2"));
        assert_eq!(&*plans.effective().revision, "r-1");
        plans.run(revised(&new, "r-2"));
        assert!(plans.is_current());
        plans.stop();
        assert!(!plans.is_current() && plans.running().is_none());
    }

    #[test]
    fn a_revision_that_leaves_an_entry_as_it_was_is_in_force_at_once() {
        let same = plan();
        let mut plans = Plans::new(revised(&same, "r-1"));
        plans.run(revised(&same, "r-1"));
        plans.want(revised(&same, "r-2"));
        assert!(plans.is_current());
        assert_eq!(plans.running(), Some(&revised(&same, "r-2")));
    }

    #[test]
    fn a_plan_that_comes_up_under_an_earlier_revision_counts_under_the_present_one() {
        let same = plan();
        let mut plans = Plans::new(revised(&same, "r-1"));
        plans.want(revised(&same, "r-2"));
        plans.run(revised(&same, "r-1"));
        assert!(plans.is_current());
    }

    #[test]
    fn a_revision_that_is_taken_back_leaves_what_runs_in_force() {
        let (old, new) = (plan(), plan());
        let mut plans = Plans::new(revised(&old, "r-1"));
        plans.run(revised(&old, "r-1"));
        plans.want(revised(&new, "r-2"));
        plans.want(revised(&old, "r-3"));
        assert!(plans.is_current());
    }
}
