//! Other values that a field could have: what a pass is tried with, to see what depends on the field.

use orkestra_language::schema::Schema;
use orkestra_object::value::{Map, Node, Path, PathStep};
use orkestra_plan::{Chosen, ConditionPlan, Leaf, Operand, OperatorPlan, walk::Expression};

/// The most constants that each field is tried with.
const MOST_CONSTANTS: usize = 64;
/// A number above what conditions and limits usually compare with.
const LARGE: i64 = 1_000_000;

/// The constants of a plan, with the fields of the custom resource that are compared with them, fall back to them, or choose by them: a
/// field that has another value may have one of these.
#[derive(Default)]
pub(crate) struct Constants {
    /// The constants of expressions that read only the custom resource, by what they read.
    of_fields: Vec<(Path, Node)>,
    /// Those of other expressions: an input of a Motif or an item of a list may come from any field.
    of_any: Vec<Node>,
}

impl Constants {
    pub(crate) fn of(plan: &OperatorPlan) -> Self {
        let mut all = Self::default();
        plan.visit(&mut |expression, _| {
            let mut reads = Vec::new();
            expression.each_read(&mut |path| reads.push(path.clone()));
            let mut add = |node: &Node| all.add(&reads, node);
            match expression {
                Expression::Leaf(leaf) => leaf.template.visit_constants(&mut add),
                Expression::Condition(condition) => of_condition(condition, &mut add),
                Expression::ForEach(_) => {}
                Expression::Body(child) => child.body.visit_chosen(&mut |chosen: &Chosen| {
                    for (name, _) in &chosen.options {
                        all.add(chosen.name.template.reads(), &Node::from(&**name));
                    }
                }),
            }
        });
        all
    }

    fn add(&mut self, reads: &[Path], node: &Node) {
        if matches!(node, Node::Map(_) | Node::List(_) | Node::Null) {
            return;
        }
        let is_own = |path: &Path| match path.steps().first() {
            Some(PathStep::Field(root)) => matches!(&**root, "spec" | "metadata" | "status"),
            _ => false,
        };
        if !reads.iter().all(is_own) {
            if !self.of_any.contains(node) {
                self.of_any.push(node.clone());
            }
            return;
        }
        for path in reads {
            if !self
                .of_fields
                .iter()
                .any(|(at, known)| at == path && known == node)
            {
                self.of_fields.push((path.clone(), node.clone()));
            }
        }
    }

    /// Returns those that the value at a path of the custom resource may be compared with.
    pub(crate) fn near(&self, path: &Path) -> Vec<Node> {
        let own = self.of_fields.iter().filter(|(at, _)| at.overlaps(path));
        let own = own.map(|(_, node)| node.clone());
        own.chain(self.any()).take(MOST_CONSTANTS).collect()
    }

    /// Returns those that any other value may be compared with.
    pub(crate) fn any(&self) -> Vec<Node> {
        self.of_any.iter().take(MOST_CONSTANTS).cloned().collect()
    }
}

fn of_condition(condition: &ConditionPlan, add: &mut dyn FnMut(&Node)) {
    if let Some(Operand::Template(template)) = condition.operand() {
        template.visit_constants(add);
    }
    for leaf in condition.leaves() {
        let Leaf { template, .. } = leaf;
        match template.literal() {
            Some(text) => text.split(',').for_each(|one| add(&Node::from(one.trim()))),
            None => template.visit_constants(add),
        }
    }
}

/// Returns other values than `value`, of a kind that the schema permits where one is known; none is the absence of the field.
pub(crate) fn alternatives(
    value: Option<&Node>,
    schema: Option<Schema<'_>>,
    constants: &[Node],
) -> Vec<Option<Node>> {
    let mut all: Vec<Node> = Vec::new();
    let word = schema.as_ref().and_then(Schema::type_word);
    match value {
        Some(Node::Bool(is)) => all.push(Node::Bool(!is)),
        Some(Node::Int(number)) => all.extend(numbers(*number)),
        Some(Node::Float(number)) => all.push(Node::Float(number + 1.0)),
        Some(Node::UInt(_)) => all.push(Node::Int(1)),
        Some(Node::Str(text)) => all.extend(texts(text)),
        None | Some(Node::Null | Node::List(_) | Node::Map(_)) => all.extend(anything()),
    }
    all.extend(
        schema
            .and_then(|schema| schema.words())
            .into_iter()
            .flatten()
            .cloned(),
    );
    for constant in constants {
        all.push(constant.clone());
        let number = constant
            .as_i64()
            .or_else(|| constant.to_text().parse().ok());
        if let Some(number) = number {
            all.extend([number - 1, number, number + 1].map(Node::Int));
        }
    }
    let like = value.filter(|value| !matches!(value, Node::Null | Node::List(_) | Node::Map(_)));
    let is_possible = |node: &Node| match (word, like) {
        (Some(word), _) => is_of_type(node, word),
        (None, Some(like)) => node.type_name() == like.type_name(),
        (None, None) => true,
    };
    all.retain(|node| is_possible(node) && Some(node) != value);
    let mut seen = Vec::with_capacity(all.len());
    for node in all {
        if !seen.contains(&node) {
            seen.push(node);
        }
    }
    let absent = value.is_some().then_some(None);
    seen.into_iter().map(Some).chain(absent).collect()
}

fn is_of_type(node: &Node, word: &str) -> bool {
    match word {
        "integer" => matches!(node, Node::Int(_)),
        "number" => matches!(node, Node::Int(_) | Node::Float(_)),
        "boolean" => matches!(node, Node::Bool(_)),
        "string" => matches!(node, Node::Str(_)),
        "int-or-string" => matches!(node, Node::Int(_) | Node::Str(_)),
        "array" => matches!(node, Node::List(_)),
        "object" => matches!(node, Node::Map(_)),
        _ => true,
    }
}

fn numbers(number: i64) -> impl Iterator<Item = Node> {
    let next = [number.saturating_add(1), number.saturating_sub(1)];
    next.into_iter().chain([0, 1, LARGE]).map(Node::Int)
}

/// Returns texts of the same form, where it has one: another number in a quantity, an address or a time.
fn texts(text: &str) -> Vec<Node> {
    let mut all = vec![format!("{text}x"), "x".to_owned(), String::new()];
    let digit = |at: Option<usize>| {
        at.map(|at| {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = if bytes[at] == b'9' {
                b'8'
            } else {
                bytes[at] + 1
            };
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    all.extend(digit(text.bytes().position(|byte| is_digit(&byte))));
    all.extend(digit(text.as_bytes().iter().rposition(is_digit)));
    match text {
        "true" => all.push("false".to_owned()),
        "false" => all.push("true".to_owned()),
        _ => {}
    }
    all.into_iter().map(|text| Node::from(&*text)).collect()
}

/// Returns values of each type, for a field that has none.
fn anything() -> Vec<Node> {
    let map: Map = [("x".into(), Node::from("x"))].into_iter().collect();
    vec![
        Node::from("x"),
        Node::from("1"),
        Node::from("1Gi"),
        Node::Int(2),
        Node::Int(LARGE),
        Node::Bool(true),
        Node::Bool(false),
        Node::List([Node::from("x")].into()),
        Node::Map(map),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &Node) -> Vec<Option<Node>> {
        alternatives(Some(value), None, &[Node::from("gold"), Node::Int(7)])
    }

    #[test]
    fn other_values_have_the_type_of_the_value_and_the_form_of_its_text() {
        let texts = of(&Node::from("10.0.0.0/8"));
        for text in ["20.0.0.0/8", "10.0.0.0/9", "gold"] {
            assert!(texts.contains(&Some(Node::from(text))), "{text}");
        }
        let numbers = of(&Node::Int(3));
        for number in [2, 4, 6, 7, 8] {
            assert!(numbers.contains(&Some(Node::Int(number))), "{number}");
        }
        assert_eq!(of(&Node::Bool(true)), [Some(Node::Bool(false)), None]);
    }

    #[test]
    fn the_schema_decides_about_a_field_without_a_value() {
        let schema = Node::from(&serde_json::json!({ "type": "string", "enum": ["a", "b"] }));
        let all = alternatives(None, Some(Schema::of_part(&schema)), &[Node::Int(7)]);
        assert!(all.contains(&Some(Node::from("b"))));
        assert!(all.iter().flatten().all(|node| node.as_str().is_some()));
    }
}
