//! What conditions ask, against what is known of the data.

use super::{Typing, problem};
use crate::{
    diagnostics::{Code, Severity},
    plan::{Condition, Gate, Leaf, Operand, Test},
    schema::{Kinds, Type, with_article},
    template::{TemplateError, explain_no_field},
    value::{Path, Step},
};

impl<'s> Typing<'_, 's> {
    /// Checks the conditions of one gate.
    pub(super) fn gate(&self, gate: &Gate) {
        for condition in gate.iter() {
            let left = self.operand(condition);
            match &condition.test {
                Test::Equals(leaf) | Test::NotEquals(leaf) => self.compared(condition, &left, leaf),
                Test::Exists | Test::NotExists => {}
            }
        }
    }

    fn operand(&self, condition: &Condition) -> Type<'s> {
        let field = format!("{}.field", condition.path);
        match &condition.operand {
            Operand::Path(path) => self.path(path).unwrap_or_else(|found| {
                self.tell(&field, Severity::Error, found);
                Type::any()
            }),
            Operand::Template(template) => {
                let inference = template.infer(self.root(), self.listed.is_some());
                self.report(&field, &inference);
                self.list(&field, template, &inference, None);
                inference.gives
            }
        }
    }

    /// What lies at a plain path.
    fn path(&self, path: &Path) -> Result<Type<'s>, TemplateError> {
        let mut given = self.root().clone();
        for step in path.steps() {
            let is_list = given.may == Kinds::LIST;
            given = match step {
                Step::Index(_) => given.each(),
                Step::Field(key) if is_list && key.bytes().all(|byte| byte.is_ascii_digit()) => {
                    given.each()
                }
                Step::Field(key) => given.field(key).map_err(|no_field| {
                    let (message, hint) = explain_no_field(key, &no_field);
                    let found = problem(Code::NoSuchField, 0, message);
                    TemplateError { hint, ..found }
                })?,
            };
        }
        Ok(given)
    }

    /// Checks the right side; both sides are compared as text.
    fn compared(&self, condition: &Condition, left: &Type<'s>, leaf: &Leaf) {
        let inference = leaf.template.infer(self.root(), self.listed.is_some());
        self.report(&leaf.path, &inference);
        self.list(&leaf.path, &leaf.template, &inference, None);
        let right = inference.gives;
        if let Some(words) = left.schema().and_then(|schema| schema.words()) {
            for constant in right.constants() {
                self.word(&leaf.path, &constant.node, words, constant.at as usize);
            }
        }
        let (left_text, right_text) = (compared(left.may), compared(right.may));
        let is_known = left.may != Kinds::NONE && right.may != Kinds::NONE;
        if is_known && !left_text.meets(right_text) && !right_text.meets(Kinds::BLANK) {
            let shown = match right.constants() {
                [only] if right.is_constant() => {
                    format!("`{}`", super::shortened(&only.node.to_text()))
                }
                _ => with_article(&right.to_string()),
            };
            let operand = match &condition.operand {
                Operand::Path(path) => format!("`{path}`"),
                Operand::Template(_) => "the template".to_owned(),
            };
            let left = with_article(&left.to_string());
            let message = format!("{operand} is {left}, which is never {shown}");
            let found = problem(Code::ComparedTypes, 0, message);
            self.tell(&leaf.path, Severity::Warning, found);
        }
    }
}

/// What values read as when they are compared. A number of either kind may equal one of the other.
fn compared(may: Kinds) -> Kinds {
    let numbers = Kinds::INT_TEXT | Kinds::FLOAT_TEXT;
    let text = may.as_text();
    if text.meets(numbers) {
        text | numbers
    } else {
        text
    }
}
