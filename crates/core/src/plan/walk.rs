//! Every expression of a plan, with what it is for: checks and read-sets look at all of them, and none is forgotten.

use super::{Condition, Gate, InputPlan, Leaf, Mode, OperatorPlan};

/// An expression of a plan.
#[derive(Clone, Copy)]
pub(crate) enum Expression<'a> {
    Leaf(&'a Leaf),
    Condition(&'a Condition),
}

/// What an expression is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// What an import gives, or a Motif says where nothing is given.
    Input,
    /// A name or a namespace of an object.
    Name,
    /// Whether something is wanted.
    Gate,
    /// A part of an object that is made once.
    Once,
    /// A part of an object that is kept as declared.
    Reconciled,
    /// A field of the custom resource's status.
    Status,
}

/// Where an expression stands.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// What it is for.
    pub(crate) purpose: Purpose,
    /// The import whose inputs it reads, by its place in [`OperatorPlan::imports`].
    pub(crate) import: Option<usize>,
}

impl OperatorPlan {
    /// Calls `visit` with every expression.
    pub(crate) fn visit<'a>(&'a self, visit: &mut dyn FnMut(Expression<'a>, Place)) {
        self.visit_inputs(visit);
        for block in &self.blocks {
            visit_gate(&block.gate, block.import, visit);
        }
        for child in &self.children {
            let mut leaf = |purpose, leaf| {
                let import = child.import;
                visit(Expression::Leaf(leaf), Place { purpose, import });
            };
            leaf(Purpose::Name, &child.name);
            if let Some(namespace) = &child.namespace {
                leaf(Purpose::Name, namespace);
            }
            let purpose = match child.mode {
                Mode::Once => Purpose::Once,
                Mode::Reconciled => Purpose::Reconciled,
            };
            child.body.visit(&mut |part| leaf(purpose, part));
            visit_gate(&child.gate, child.import, visit);
        }
        for field in &self.status.fields {
            let place = Place {
                purpose: Purpose::Status,
                import: field.import,
            };
            visit(Expression::Leaf(&field.value), place);
            visit_gate(&field.gate, field.import, visit);
        }
    }

    fn visit_inputs<'a>(&'a self, visit: &mut dyn FnMut(Expression<'a>, Place)) {
        for import in &self.imports {
            for InputPlan { given, default, .. } in &import.inputs {
                for (tree, import) in [(given, import.outer), (default, None)] {
                    let place = Place {
                        purpose: Purpose::Input,
                        import,
                    };
                    if let Some(tree) = tree {
                        tree.visit(&mut |leaf| visit(Expression::Leaf(leaf), place));
                    }
                }
            }
        }
    }
}

fn visit_gate<'a>(
    gate: &'a Gate,
    import: Option<usize>,
    visit: &mut dyn FnMut(Expression<'a>, Place),
) {
    let purpose = Purpose::Gate;
    for condition in gate.iter() {
        visit(Expression::Condition(condition), Place { purpose, import });
    }
}
