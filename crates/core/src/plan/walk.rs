//! Visits every expression of a plan, with its purpose, so that checks and read-sets cover all of them.

use super::{
    ChildPlan, Condition, ForEach, Gate, InputPlan, Leaf, OperatorPlan, RequeuePlan, Stage,
    cross::CrossPlan, observe::KeyPlan,
};

/// An expression of a plan.
#[derive(Clone, Copy)]
pub(crate) enum Expression<'a> {
    Leaf(&'a Leaf),
    Condition(&'a Condition),
    /// The list that an entry is expanded for.
    ForEach(&'a ForEach),
}

/// The purpose of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The value of an import's input, or the Motif's default.
    Input,
    /// Selects another operator's custom resource.
    Cross,
    /// Finds the custom resource of a watched object or Event; it reads only that object.
    Key,
    /// A name or a namespace of an object.
    Name,
    /// Part of a gate.
    Gate,
    /// A part of an object that is created once.
    Once,
    /// A part of an object that is reconciled.
    Reconciled,
    /// A field of the custom resource's status, or other data reported there.
    Status,
    /// A value of the custom resource itself, set by `normalize` or `mutation`.
    Prepared,
    /// A part of an external request.
    Call,
    /// A label of the custom resource.
    Label,
}

/// The context of an expression.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Its purpose.
    pub(crate) purpose: Purpose,
    /// The import whose inputs it reads, as an index into [`OperatorPlan::imports`].
    pub(crate) import: Option<usize>,
    /// The element that it reads, if its entry is expanded for a list.
    pub(crate) each: Option<&'a ForEach>,
    /// The minimum number of calls made before it is evaluated.
    pub(crate) made: usize,
    /// True in rules and calls that admission evaluates: they read `.old` and `.operation`.
    pub(crate) in_rules: bool,
}

impl<'a> Place<'a> {
    /// Returns a place in the Katalog itself, evaluated after all calls.
    pub(crate) fn of(purpose: Purpose) -> Self {
        Self {
            purpose,
            import: None,
            each: None,
            made: usize::MAX,
            in_rules: false,
        }
    }

    /// Returns the same place inside of an import.
    pub(crate) fn inside(self, import: Option<usize>) -> Self {
        Self { import, ..self }
    }

    /// Returns the same place for an element.
    fn each(self, each: Option<&'a ForEach>) -> Self {
        Self { each, ..self }
    }
}

/// Wraps `visit` for expressions evaluated after `made` calls.
fn when_made<'a>(
    made: usize,
    visit: &mut dyn FnMut(Expression<'a>, Place<'a>),
) -> impl FnMut(Expression<'a>, Place<'a>) {
    move |expression, place| visit(expression, Place { made, ..place })
}

/// Wraps `visit` for expressions of rules.
fn in_rules<'a>(
    visit: &mut dyn FnMut(Expression<'a>, Place<'a>),
) -> impl FnMut(Expression<'a>, Place<'a>) {
    move |expression, place| {
        let in_rules = true;
        visit(expression, Place { in_rules, ..place });
    }
}

impl OperatorPlan {
    /// Calls `visit` with every expression of the plan.
    pub(crate) fn visit<'a>(&'a self, visit: &mut dyn FnMut(Expression<'a>, Place<'a>)) {
        self.visit_inputs(visit);
        for leaf in self.cross.iter().flat_map(CrossPlan::leaves) {
            visit(Expression::Leaf(leaf), Place::of(Purpose::Cross));
        }
        for leaf in self.observe.keys().flat_map(KeyPlan::leaves) {
            visit(Expression::Leaf(leaf), Place::of(Purpose::Key));
        }
        for entry in &self.enrich {
            visit_gate(&entry.gate, (None, None), &mut when_made(0, visit));
        }
        let before = [
            (&self.hold.enqueue, Stage::EnqueueGate),
            (&self.hold.reconcile, Stage::ReconcileGate),
        ];
        for (gate, stage) in before {
            let made = self.calls_until(stage);
            visit_gate(gate, (None, None), &mut when_made(made, visit));
        }
        visit_gate(&self.hold.children, (None, None), visit);
        for RequeuePlan { after, gate } in &self.requeue {
            visit(Expression::Leaf(after), Place::of(Purpose::Gate));
            visit_gate(gate, (None, None), visit);
        }
        self.rules.visit_normalize(&mut when_made(0, visit));
        let made = self.calls_until(Stage::Mutation);
        self.rules
            .visit_mutation(&mut in_rules(&mut when_made(made, visit)));
        let made = self.calls_until(Stage::Validation);
        self.rules
            .visit_validation(&mut in_rules(&mut when_made(made, visit)));
        for (made, call) in self.calls.iter().enumerate() {
            call.visit(&mut |expression| {
                let purpose = match expression {
                    Expression::Condition(_) => Purpose::Gate,
                    _ => Purpose::Call,
                };
                let place = Place {
                    made,
                    in_rules: [Stage::Mutation, Stage::Validation].contains(&call.stage),
                    ..Place::of(purpose).inside(call.import)
                };
                visit(expression, place);
            });
        }
        for block in &self.blocks {
            visit_gate(&block.gate, (block.import, None), visit);
        }
        for (_, label) in &self.labels {
            visit(Expression::Leaf(label), Place::of(Purpose::Label));
        }
        for child in &self.children {
            visit_child(child, true, visit);
        }
        if let Some(ending) = &self.ending {
            // `onDelete` makes no calls.
            let visit = &mut when_made(0, visit);
            visit_gate(&ending.block.gate, (None, None), visit);
            for step in &ending.steps {
                visit_gate(&step.gate, (None, None), visit);
                step.made
                    .iter()
                    .for_each(|child| visit_child(child, true, visit));
                step.deleted
                    .iter()
                    .for_each(|child| visit_child(child, false, visit));
            }
        }
        for field in &self.status.fields {
            let place = Place::of(Purpose::Status).inside(field.import);
            visit(Expression::Leaf(&field.value), place);
            visit_gate(&field.gate, (field.import, None), visit);
        }
        self.visit_own_conditions(visit);
        for emit in &self.emits {
            for leaf in [&emit.reason, &emit.message] {
                visit(Expression::Leaf(leaf), Place::of(Purpose::Status));
            }
            visit_gate(&emit.gate, (None, None), visit);
        }
        if let Some(cleanup) = &self.cleanup {
            visit_gate(&cleanup.gate, (None, None), visit);
        }
    }

    fn visit_own_conditions<'a>(&'a self, visit: &mut dyn FnMut(Expression<'a>, Place<'a>)) {
        for own in &self.status.own {
            for leaf in [&own.status, &own.reason, &own.message]
                .into_iter()
                .flatten()
            {
                visit(Expression::Leaf(leaf), Place::of(Purpose::Status));
            }
            visit_gate(&own.gate, (None, None), visit);
        }
        visit_gate(&self.status.ready_when, (None, None), visit);
    }

    fn visit_inputs<'a>(&'a self, visit: &mut dyn FnMut(Expression<'a>, Place<'a>)) {
        for import in &self.imports {
            for InputPlan { given, default, .. } in &import.inputs {
                for (tree, import) in [(given, import.outer), (default, None)] {
                    let place = Place::of(Purpose::Input).inside(import);
                    if let Some(tree) = tree {
                        tree.visit(&mut |leaf| visit(Expression::Leaf(leaf), place));
                    }
                }
            }
        }
    }
}

pub(crate) fn visit_gate<'a>(
    gate: &'a Gate,
    (import, each): (Option<usize>, Option<&'a ForEach>),
    visit: &mut dyn FnMut(Expression<'a>, Place<'a>),
) {
    for condition in gate.iter() {
        let place = Place::of(Purpose::Gate).inside(import).each(each);
        visit(Expression::Condition(condition), place);
    }
}

/// Visits the expressions of one entry; those of the body only if `with_body`.
pub(crate) fn visit_child<'a>(
    child: &'a ChildPlan,
    with_body: bool,
    visit: &mut dyn FnMut(Expression<'a>, Place<'a>),
) {
    let (import, each) = (child.import, child.for_each.as_deref());
    if let Some(each) = each {
        let place = Place::of(Purpose::Gate).inside(import);
        visit(Expression::ForEach(each), place);
    }
    let mut leaf = |purpose, leaf| {
        let place = Place::of(purpose).inside(import).each(each);
        visit(Expression::Leaf(leaf), place);
    };
    leaf(Purpose::Name, &child.name);
    if let Some(namespace) = &child.namespace {
        leaf(Purpose::Name, namespace);
    }
    // The source of a copy, and the names of a certificate, must be the same in each pass.
    child.upkeep().for_each(|part| leaf(Purpose::Name, part));
    let purpose = if child.draws_once() {
        Purpose::Once
    } else {
        Purpose::Reconciled
    };
    if with_body {
        child.body.visit(&mut |part| leaf(purpose, part));
    }
    visit_gate(&child.gate, (import, each), visit);
    for gate in child.scale.iter().flat_map(|plan| plan.gates()) {
        visit_gate(gate, (import, each), visit);
    }
}
