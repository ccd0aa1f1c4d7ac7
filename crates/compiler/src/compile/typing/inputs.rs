//! Types of the inputs of imports.

use super::{Typing, target::made_by};
use orkestra_language::schema::{Kinds, Type};
use orkestra_plan::{Coerce, ImportPlan, InputPlan, ObjectTree};

impl<'s> Typing<'_, 's> {
    /// Checks the values given by imports, and determines the template roots inside of their Motifs.
    pub(crate) fn imports(&mut self, imports: &[ImportPlan]) {
        for import in imports {
            let inputs: Vec<(String, Type<'s>)> = (import.inputs.iter())
                .map(|input| (input.name.to_string(), self.input(import, input)))
                .collect();
            let around = self.root.clone();
            let inputs = Type::of_names(inputs);
            self.inside.push(around.with_name("inputs", inputs));
        }
        self.import.set(None);
    }

    fn input(&self, import: &ImportPlan, input: &InputPlan) -> Type<'s> {
        let InputPlan {
            given,
            default,
            coerce,
            ..
        } = input;
        self.import.set(import.outer);
        let given = given.as_ref().map(|tree| self.value(tree, *coerce));
        self.import.set(None);
        let default = default.as_ref().map(|tree| self.value(tree, *coerce));
        match (given, default) {
            // The given value may render to nothing.
            (Some(given), Some(default)) => given.or(default),
            (Some(value), None) | (None, Some(value)) => value,
            (None, None) => Type::any(),
        }
    }

    fn value(&self, tree: &ObjectTree, coerce: Coerce) -> Type<'s> {
        let gives = match tree {
            ObjectTree::Leaf(leaf) => {
                self.leaf(leaf, None);
                leaf.template
                    .infer(self.root(), false)
                    .gives
                    .without_constants()
            }
            ObjectTree::Fixed(node) => Type::of(Kinds::of(node)),
            _ => Type::any(),
        };
        if coerce == Coerce::Native {
            gives
        } else {
            Type::of(made_by(coerce))
        }
    }
}
