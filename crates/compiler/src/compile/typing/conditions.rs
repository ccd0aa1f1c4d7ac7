//! Checks conditions against the known types of the data.

use super::{Typing, problem};
use crate::resources::amount::shortened;
use orkestra_language::{
    api::ValueType,
    diagnostics::{Code, Severity},
    schema::{Kinds, Type, with_article},
};
use orkestra_object::value::{Node, Path, PathStep};
use orkestra_plan::{
    Coerce, ConditionPlan, Leaf, Members, Operand, OperandRelation, Pattern, Question, Test,
};
use orkestra_template::{TemplateError, explain_no_field};

impl<'s> Typing<'_, 's> {
    /// Checks one condition.
    pub(crate) fn condition(&self, condition: &ConditionPlan) {
        let Question::Value(operand, tests) = &condition.asks else {
            for leaf in condition.leaves() {
                self.rendered(leaf);
            }
            return;
        };
        let left = (operand, self.operand(condition, operand));
        for test in tests {
            self.test(condition, (left.0, &left.1), test);
        }
    }

    fn operand(&self, condition: &ConditionPlan, operand: &Operand) -> Type<'s> {
        let field = condition.path.field("field");
        match operand {
            Operand::Path(path) => self.path(path).unwrap_or_else(|found| {
                self.record(field, Severity::Error, found);
                Type::any()
            }),
            Operand::Template(template) => {
                let inference = template.infer(self.root(), self.listed.is_some());
                self.report(field, &inference);
                self.list(field, template, &inference, None);
                inference.gives
            }
        }
    }

    fn test(&self, condition: &ConditionPlan, (operand, left): (&Operand, &Type<'s>), test: &Test) {
        let numbers = |leaves: &[Leaf]| {
            self.never_a_number(condition, operand, left);
            for leaf in leaves {
                self.number(leaf);
            }
        };
        match &test.relation {
            OperandRelation::Equals(leaf, ValueType::String) => {
                self.compared(operand, left, leaf, &self.rendered(leaf));
            }
            OperandRelation::In(members, ValueType::String) => self.members(operand, left, members),
            OperandRelation::Is(_, leaf) => numbers(std::slice::from_ref(leaf)),
            OperandRelation::Between(members) => numbers(members.leaves()),
            OperandRelation::Equals(leaf, _)
            | OperandRelation::Contains(leaf)
            | OperandRelation::Prefix(leaf)
            | OperandRelation::Suffix(leaf)
            | OperandRelation::Matches(Pattern::Rendered(leaf)) => {
                self.rendered(leaf);
            }
            OperandRelation::In(members, _) => members.leaves().iter().for_each(|leaf| {
                self.rendered(leaf);
            }),
            OperandRelation::Exists
            | OperandRelation::Unique
            | OperandRelation::Unchanged
            | OperandRelation::Type(_)
            | OperandRelation::Matches(Pattern::Fixed(_)) => {}
        }
    }

    /// Checks the template of a right side.
    fn rendered(&self, leaf: &Leaf) -> Type<'s> {
        let inference = leaf.template.infer(self.root(), self.listed.is_some());
        self.report(leaf.path.here(), &inference);
        self.list(leaf.path.here(), &leaf.template, &inference, None);
        inference.gives
    }

    /// Checks the values of a list: each may be one that the left side never has.
    fn members(&self, operand: &Operand, left: &Type<'s>, members: &Members) {
        for leaf in members.leaves() {
            let given = self.rendered(leaf);
            let split = matches!(members, Members::Split(_));
            match leaf.template.literal() {
                Some(text) if split => {
                    for item in text.split(',') {
                        let item = Type::constant(&Node::from(item.trim()), 0);
                        self.compared(operand, left, leaf, &item);
                    }
                }
                _ if split => {}
                _ => self.compared(operand, left, leaf, &given),
            }
        }
    }

    /// Reports a left side that is never a number.
    fn never_a_number(&self, condition: &ConditionPlan, operand: &Operand, left: &Type<'s>) {
        let numbers = Kinds::INT_TEXT | Kinds::FLOAT_TEXT | Kinds::BLANK;
        let words = left.schema().and_then(|schema| schema.words());
        let never = left.may != Kinds::NONE && !left.may.as_text().meets(numbers);
        let no_word = |word: &Node| Coerce::Float.apply(Node::from(&*word.to_text())).is_err();
        if never || words.is_some_and(|words| words.iter().all(no_word)) {
            let left = with_article(&left.to_string());
            let message = format!("{} is {left}, which is never a number", named(operand));
            let field = condition.path.field("field");
            let found = problem(Code::ComparedTypes, 0, message);
            self.record(field, Severity::Warning, found);
        }
    }

    /// Checks a right side that must be a number.
    fn number(&self, leaf: &Leaf) {
        let given = self.rendered(leaf);
        if leaf.template.literal().is_some() {
            return;
        }
        let numbers = Kinds::INT_TEXT | Kinds::FLOAT_TEXT | Kinds::BLANK;
        let may = given.may;
        if may != Kinds::NONE && !may.meets(Kinds::LIST) && !may.as_text().meets(numbers) {
            let given = with_article(&given.to_string());
            let message = format!("expected a number, but the template returns {given}");
            let found = problem(Code::WrongValue, 0, message);
            self.record(leaf.path.here(), Severity::Error, found);
        }
    }

    /// Returns the type at a plain path.
    pub(crate) fn path(&self, path: &Path) -> Result<Type<'s>, TemplateError> {
        let mut given = self.root().clone();
        for step in path.steps() {
            let is_list = given.may == Kinds::LIST;
            given = match step {
                PathStep::Index(_) => given.each(),
                PathStep::Field(key)
                    if is_list && key.bytes().all(|byte| byte.is_ascii_digit()) =>
                {
                    given.each()
                }
                PathStep::Field(key) => given.field(key).map_err(|no_field| {
                    let (message, hint) = explain_no_field(key, &no_field);
                    let found = problem(Code::NoSuchField, 0, message);
                    TemplateError { hint, ..found }
                })?,
            };
        }
        Ok(given)
    }

    /// Checks the right side; both sides are compared as text.
    fn compared(&self, operand: &Operand, left: &Type<'s>, leaf: &Leaf, right: &Type<'s>) {
        if let Some(words) = left.schema().and_then(|schema| schema.words()) {
            for constant in right.constants() {
                self.word(
                    leaf.path.here(),
                    &constant.node,
                    words,
                    constant.at as usize,
                );
            }
        }
        let (left_text, right_text) = (compared(left.may), compared(right.may));
        let is_known = left.may != Kinds::NONE && right.may != Kinds::NONE;
        if is_known && !left_text.meets(right_text) && !right_text.meets(Kinds::BLANK) {
            let shown = match right.constants() {
                [only] if right.is_constant() => {
                    format!("`{}`", shortened(&only.node.to_text()))
                }
                _ => with_article(&right.to_string()),
            };
            let operand = named(operand);
            let left = with_article(&left.to_string());
            let message = format!("{operand} is {left}, which is never {shown}");
            let found = problem(Code::ComparedTypes, 0, message);
            self.record(leaf.path.here(), Severity::Warning, found);
        }
    }
}

fn named(operand: &Operand) -> String {
    match operand {
        Operand::Path(path) => format!("`{path}`"),
        Operand::Template(_) => "the template".to_owned(),
    }
}

/// Returns the kinds of text that values are compared as. A number of either kind may equal one of the other.
fn compared(may: Kinds) -> Kinds {
    let numbers = Kinds::INT_TEXT | Kinds::FLOAT_TEXT;
    let text = may.as_text();
    if text.meets(numbers) {
        text | numbers
    } else {
        text
    }
}
