//! What holds a custom resource back, and what brings it back.

use super::{Coerce, Gate, Leaf, OnFalse, conditions, reads::EXTERNAL};
use crate::{
    api::{Gates, Hold, OperatorBox, PreReconcile, Reconciler, Requeue, duration},
    diagnostics::Code,
    resources::scope::At,
    value::Step,
};

/// What must hold for a custom resource to be worked on.
#[derive(Debug, Default)]
pub struct HoldPlan {
    /// For it to be queued.
    pub enqueue: Gate,
    /// For a queued one to be reconciled.
    pub reconcile: Gate,
    /// For its children: a closed one closes every block.
    pub children: Gate,
    /// What becomes of children that are kept as declared when that gate closes.
    pub on_false: Option<OnFalse>,
}

/// When another pass follows one that went well.
#[derive(Debug)]
pub struct RequeuePlan {
    /// How long after it.
    pub after: Leaf,
    /// What must hold for it.
    pub gate: Gate,
}

impl HoldPlan {
    /// Every gate.
    pub fn gates(&self) -> [&Gate; 3] {
        [&self.enqueue, &self.reconcile, &self.children]
    }
}

/// What holds the custom resources of the box at `at` back.
pub(crate) fn compile(at: &At<'_>, declared: &OperatorBox) -> HoldPlan {
    let default = PreReconcile::default();
    let PreReconcile {
        enqueue_gate,
        reconcile_gate,
        later: _,
    } = declared.pre_reconcile.as_ref().unwrap_or(&default);
    let before = at.field("preReconcile");
    let gate = |name: &str, hold: &Option<Hold>| {
        let hold = hold.as_ref();
        let gate = hold.map(|hold| of_gates(&before.field(name), &hold.gates));
        let gate = gate.unwrap_or_default();
        without_calls(at, &gate);
        gate
    };
    let children = conditions::gate(at, &declared.when, &declared.or);
    HoldPlan {
        enqueue: gate("enqueueGate", enqueue_gate),
        reconcile: gate("reconcileGate", reconcile_gate),
        on_false: (!children.is_empty())
            .then(|| conditions::default_on_false([&children], None, None)),
        children,
    }
}

/// Refuses what reads the answers to calls, of which none is made before the gate is open.
fn without_calls(at: &At<'_>, gate: &Gate) {
    for condition in gate.iter() {
        let mut reads_calls = false;
        condition.visit_reads(&mut |path| {
            let root = path.steps().first();
            reads_calls |= matches!(root, Some(Step::Field(root)) if &**root == EXTERNAL);
        });
        if reads_calls {
            let message = "the calls of the box are made when the gate is open, and not before";
            at.place(&condition.path).error(Code::UnknownData, message);
        }
    }
}

fn of_gates(at: &At<'_>, gates: &Gates) -> Gate {
    conditions::gate(at, &gates.when, &gates.or)
}

/// When a custom resource is reconciled again: the first of the layers of `reconciler` that says so.
pub(crate) fn requeue(layers: &[(At<'_>, &Reconciler)]) -> Option<RequeuePlan> {
    let (at, declared) = layers
        .iter()
        .find_map(|(at, reconciler)| Some((at.field("requeue"), reconciler.requeue.as_ref()?)))?;
    let Requeue { after, gates } = declared;
    let gate = of_gates(&at, gates);
    let Some(after) = after else {
        at.error_hint(
            Code::Missing,
            "`after` is missing",
            "say how long after a pass, such as `after: 5m`",
        );
        return None;
    };
    let at = at.field("after");
    let after = at.leaf(after, Coerce::OptionalText)?;
    match after.template.literal().map(str::trim) {
        Some("") => return None,
        Some(literal) => match duration::parse(literal) {
            Ok(length) if length.is_zero() => return None,
            Ok(_) => {}
            Err(error) => {
                at.error(Code::BadDuration, error.to_string());
                return None;
            }
        },
        None => {}
    }
    Some(RequeuePlan { after, gate })
}
