//! Every expression of a plan, with what it is for: checks and read-sets look at all of them, and none is forgotten.

use super::{
    ChildPlan, Condition, ForEach, Gate, InputPlan, Leaf, OperatorPlan, RequeuePlan, Stage,
    cross::CrossPlan, observe::KeyPlan,
};

/// An expression of a plan.
#[derive(Clone, Copy)]
pub(crate) enum Expression<'a> {
    Leaf(&'a Leaf),
    Condition(&'a Condition),
    /// The list that an entry is made for each of.
    ForEach(&'a ForEach),
}

/// What an expression is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// What an import gives, or a Motif says where nothing is given.
    Input,
    /// Which custom resource of another operator is read.
    Cross,
    /// Which custom resource belongs to an object or Event that is watched: it reads that, and nothing else.
    Key,
    /// A name or a namespace of an object.
    Name,
    /// Whether something is wanted.
    Gate,
    /// A part of an object that is made once.
    Once,
    /// A part of an object that is kept as declared.
    Reconciled,
    /// A field of the custom resource's status, or something else that is told there.
    Status,
    /// A value of the custom resource itself, normalized or completed.
    Prepared,
    /// A part of what is sent to the outside.
    Call,
    /// A label of the custom resource.
    Label,
}

/// Where an expression stands.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// What it is for.
    pub(crate) purpose: Purpose,
    /// The import whose inputs it reads, by its place in [`OperatorPlan::imports`].
    pub(crate) import: Option<usize>,
    /// The element that it reads, where its entry is made for each of a list.
    pub(crate) each: Option<&'a ForEach>,
    /// How many of the calls are made before it is evaluated, at least.
    pub(crate) made: usize,
}

impl<'a> Place<'a> {
    /// A place in the Katalog itself, evaluated when all calls are made.
    pub(crate) fn of(purpose: Purpose) -> Self {
        Self {
            purpose,
            import: None,
            each: None,
            made: usize::MAX,
        }
    }

    /// The same inside of an import.
    pub(crate) fn inside(self, import: Option<usize>) -> Self {
        Self { import, ..self }
    }

    /// The same for an element.
    fn each(self, each: Option<&'a ForEach>) -> Self {
        Self { each, ..self }
    }
}

/// `visit` for what is evaluated once that many of the calls are made.
fn when_made<'a>(
    made: usize,
    visit: &mut dyn FnMut(Expression<'a>, Place<'a>),
) -> impl FnMut(Expression<'a>, Place<'a>) {
    move |expression, place| visit(expression, Place { made, ..place })
}

impl OperatorPlan {
    /// Calls `visit` with every expression.
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
        self.rules.visit_mutation(&mut when_made(made, visit));
        let made = self.calls_until(Stage::Validation);
        self.rules.visit_validation(&mut when_made(made, visit));
        for (made, call) in self.calls.iter().enumerate() {
            call.visit(&mut |expression| {
                let purpose = match expression {
                    Expression::Condition(_) => Purpose::Gate,
                    _ => Purpose::Call,
                };
                let place = Place::of(purpose).inside(call.import);
                visit(expression, Place { made, ..place });
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
            // None is made at the end.
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

/// The expressions of one entry; its body's only where that is looked at.
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
    // What a copy is of, or a certificate for, must be the same in each pass.
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
