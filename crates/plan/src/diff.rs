//! Computes the changes that a new plan of a Katalog makes to running operators.

use std::{collections::BTreeMap, sync::Arc};

use super::{Moments, OperatorPlan, Plan};

/// One change from a running plan to the next.
#[derive(Clone, Debug)]
pub enum PlanChange {
    /// The operator with this name stops.
    Stop(String),
    /// The operator keeps running with another plan: its kind is the same.
    Reconfigure {
        /// The operator's name.
        name: String,
        /// Its new plan.
        plan: Arc<OperatorPlan>,
    },
    /// An operator starts.
    Start(Arc<OperatorPlan>),
}

/// Returns the changes from `old` to `new`, both of one Katalog; unchanged operators are left out.
///
/// Stops come first, then changes, then starts, each by name: an operator that gets another kind, or a kind that gets
/// another operator, stops before its successor starts.
pub fn diff(old: &Plan, new: &Plan) -> Vec<PlanChange> {
    let running: BTreeMap<&str, &Arc<OperatorPlan>> = old
        .operators
        .iter()
        .map(|plan| (&*plan.name, plan))
        .collect();
    let wanted: BTreeMap<&str, &Arc<OperatorPlan>> = new
        .operators
        .iter()
        .map(|plan| (&*plan.name, plan))
        .collect();
    let keeps_kind = |before: &OperatorPlan, after: &OperatorPlan| {
        before.resource.group_kind() == after.resource.group_kind()
    };

    let mut changes = Vec::new();
    for (name, before) in &running {
        if !wanted
            .get(name)
            .is_some_and(|after| keeps_kind(before, after))
        {
            changes.push(PlanChange::Stop((*name).to_owned()));
        }
    }
    let mut starts = Vec::new();
    for (name, after) in &wanted {
        match running.get(name) {
            Some(before) if keeps_kind(before, after) => {
                if !runs_alike(before, after) {
                    changes.push(PlanChange::Reconfigure {
                        name: (*name).to_owned(),
                        plan: Arc::clone(after),
                    });
                }
            }
            _ => starts.push(PlanChange::Start(Arc::clone(after))),
        }
    }
    changes.extend(starts);
    changes
}

/// True if replacing one plan by the other changes nothing for an operator.
fn runs_alike(before: &OperatorPlan, after: &OperatorPlan) -> bool {
    before.hash == after.hash
        && beside_hash(before) == beside_hash(after)
        && admit_alike(before, after)
}

/// Returns what an operator uses of its plan in addition to what the hash covers.
fn beside_hash(plan: &OperatorPlan) -> impl PartialEq {
    let OperatorPlan {
        workers,
        most_workers,
        resync,
        queue,
        autoscale,
        depends_on,
        resource,
        cross_access,
        pages,
        // The same in both: operators are compared by name.
        name: _,
        // The kind determines them.
        roots: _,
        // Compared by `admit_alike`, as the moments of rules and calls are.
        admission: _,
        // The hash, and what it covers.
        hash: _,
        katalog: _,
        source: _,
        watched: _,
        targets: _,
        labels: _,
        finalizer: _,
        rules: _,
        other_finalizers: _,
        imports: _,
        hold: _,
        requeue: _,
        calls: _,
        hooks: _,
        cross: _,
        observe: _,
        enrich: _,
        blocks: _,
        children: _,
        on_delete: _,
        status: _,
        emits: _,
        cleanup: _,
        reads: _,
        children_names: _,
    } = plan;
    let capacity = (*workers, *most_workers, *resync, queue.clone());
    let scale = autoscale.as_ref().map(|scale| scale.hash.clone());
    let others = (*cross_access, *pages, depends_on.clone(), resource.clone());
    (capacity, scale, others)
}

/// True if both plans have one verdict at admission, in addition to what their hashes cover.
fn admit_alike(before: &OperatorPlan, after: &OperatorPlan) -> bool {
    let changes = |plan: &OperatorPlan| -> Vec<Moments> {
        let rules = &plan.rules;
        let normalize = rules.normalize.iter().map(|one| &one.moments);
        let mutation = rules.mutation.iter().map(|one| &one.moments);
        let calls = plan.calls.iter().map(|one| &one.moments);
        normalize.chain(mutation).chain(calls).cloned().collect()
    };
    let checks = |plan: &OperatorPlan| -> Vec<_> {
        let rules = plan.rules.validation.iter();
        rules
            .map(|one| (one.moments.clone(), one.cel.clone()))
            .collect()
    };
    before.admission == after.admission
        && changes(before) == changes(after)
        && checks(before) == checks(after)
}
