//! Trees with expressions become objects.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};

use super::reason::Reason;
use crate::{
    plan::{Coerce, Condition, GroupKind, Leaf, ObjectKey, Operand, Test, Tree},
    resources::container_name,
    template::{Budget, Data, EvalErrorKind},
    value::{Key, Map, Node, Path, Step, hash_text},
};

/// Why something could not be rendered: the custom resource or the Katalog must change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct RenderError {
    /// The field in the Katalog.
    pub path: Box<str>,
    /// What is wrong, without a value of a Secret.
    pub message: String,
    /// How it is reported.
    pub reason: Reason,
}

/// What is rendered for: the data that templates read, the budget of the pass, and the custom resource that names workloads.
pub struct Renderer<'a, 'd> {
    /// The roots.
    pub data: &'a Data<'d>,
    /// One for the whole pass.
    pub budget: &'a mut Budget,
    /// The custom resource's kind and key.
    pub owner: (&'a GroupKind, &'a ObjectKey),
}

impl Renderer<'_, '_> {
    /// Renders one leaf; nothing where the field is left out.
    ///
    /// # Errors
    /// [`RenderError`] when the template fails or its result does not fit the field.
    pub fn leaf(&mut self, leaf: &Leaf) -> Result<Option<Node>, RenderError> {
        let value = leaf
            .template
            .eval(self.data, self.budget)
            .map_err(|error| RenderError {
                path: leaf.path.clone(),
                message: error.to_string(),
                reason: if error.kind == EvalErrorKind::Budget {
                    Reason::BudgetExhausted
                } else {
                    Reason::TemplateFailed
                },
            })?;
        coerce(value.into_owned(), leaf.coerce).map_err(|wanted| RenderError {
            path: leaf.path.clone(),
            message: format!("`{}` must give {wanted}", leaf.template.source()),
            reason: Reason::WrongType,
        })
    }

    /// Renders a leaf as trimmed text: names, operands.
    ///
    /// # Errors
    /// As [`Renderer::leaf`].
    pub fn text(&mut self, leaf: &Leaf) -> Result<String, RenderError> {
        Ok(self
            .leaf(leaf)?
            .map(|node| node.to_text().trim().to_owned())
            .unwrap_or_default())
    }

    /// Renders a tree; nothing where it is left out.
    ///
    /// # Errors
    /// The first leaf's that cannot be rendered.
    pub fn tree(&mut self, tree: &Tree) -> Result<Option<Node>, RenderError> {
        match tree {
            Tree::Fixed(node) => Ok(Some(node.clone())),
            Tree::Leaf(leaf) => self.leaf(leaf),
            Tree::Map(entries) => Ok(Some(self.map(entries)?)),
            Tree::Part(entries) => {
                let Some((first, _)) = entries.first() else {
                    return Ok(None);
                };
                let part = self.map(entries)?;
                Ok(part.get(first).is_some().then_some(part))
            }
            Tree::List(items) => {
                let mut rendered = Vec::with_capacity(items.len());
                for item in items {
                    rendered.extend(self.tree(item)?);
                }
                Ok((!rendered.is_empty()).then(|| Node::List(rendered.into())))
            }
            Tree::ContainerName(name) => Ok(Some(Node::from(container_name(&self.text(name)?)))),
            Tree::Workload(workload) => {
                let name = self.text(&workload.1)?;
                Ok(Some(Node::from(workload_label(
                    self.owner.0,
                    self.owner.1,
                    &workload.0,
                    &name,
                ))))
            }
        }
    }

    fn map(&mut self, entries: &[(Key, Tree)]) -> Result<Node, RenderError> {
        let mut fields = Vec::with_capacity(entries.len());
        for (key, child) in entries {
            if let Some(node) = self.tree(child)? {
                fields.push((Key::clone(key), node));
            }
        }
        Ok(Node::Map(fields.into_iter().collect::<Map>()))
    }

    /// Whether every condition holds.
    ///
    /// # Errors
    /// The first operand's that cannot be rendered.
    pub fn gate(&mut self, conditions: &[Condition]) -> Result<bool, RenderError> {
        for condition in conditions {
            if !self.condition(condition)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn condition(&mut self, condition: &Condition) -> Result<bool, RenderError> {
        let operand = match &condition.operand {
            Operand::Path(path) => at(self.data, path)
                .map(|node| node.to_text().trim().to_owned())
                .unwrap_or_default(),
            Operand::Template(template) => {
                let leaf = Leaf {
                    template: template.clone(),
                    coerce: Coerce::Text,
                    path: condition.path.clone(),
                };
                self.text(&leaf)?
            }
        };
        Ok(match &condition.test {
            Test::Equals(leaf) => operand == self.text(leaf)?,
            Test::NotEquals(leaf) => operand != self.text(leaf)?,
            Test::Exists => !operand.is_empty(),
            Test::NotExists => operand.is_empty(),
        })
    }
}

/// The node at a path that starts with a root's name.
fn at<'d>(data: &Data<'d>, path: &Path) -> Option<&'d Node> {
    let (Step::Field(root), rest) = path.steps().split_first()? else {
        return None;
    };
    data.get(root)?.at(&rest.iter().cloned().collect::<Path>())
}

/// Makes `value` what the field takes; nothing where the field is left out.
///
/// # Errors
/// What the field takes, when the value is not that.
pub fn coerce(value: Node, to: Coerce) -> Result<Option<Node>, &'static str> {
    if to == Coerce::Native {
        return Ok((value != Node::Null).then_some(value));
    }
    if to == Coerce::Text {
        return Ok(Some(text_node(&value)));
    }
    if to == Coerce::Base64 {
        return Ok(Some(Node::from(BASE64.encode(&*value.to_text()))));
    }
    let text = value.to_text();
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    match to {
        Coerce::Int => integer(&value, text).map(Some).ok_or("an integer"),
        Coerce::Port => integer(&value, text)
            .map(|port| (port != Node::Int(0)).then_some(port))
            .ok_or("a port number"),
        Coerce::Float => text
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .map(|number| Some(Node::Float(number)))
            .ok_or("a number"),
        Coerce::Bool => text
            .parse()
            .map(|truth| Some(Node::Bool(truth)))
            .map_err(|_| "true or false"),
        Coerce::IntOrText => Ok(Some(
            integer(&value, text).unwrap_or_else(|| Node::from(text)),
        )),
        Coerce::Auto => Ok(Some(looks_like(&value, text))),
        Coerce::Native | Coerce::Text | Coerce::OptionalText | Coerce::Base64 => {
            Ok(Some(Node::from(text)))
        }
    }
}

/// What a text reads as: an integer, a number, a boolean, else text. Other values are what they are.
fn looks_like(value: &Node, text: &str) -> Node {
    if !matches!(value, Node::Str(_)) {
        return value.clone();
    }
    let float = || {
        text.parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .map(Node::Float)
    };
    let truth = || text.parse().ok().map(Node::Bool);
    text.parse()
        .ok()
        .map(Node::Int)
        .or_else(float)
        .or_else(truth)
        .unwrap_or_else(|| Node::from(text))
}

fn text_node(value: &Node) -> Node {
    match value {
        Node::Str(_) => value.clone(),
        other => Node::from(&*other.to_text()),
    }
}

/// An integer, also from a float without a fraction: JSON knows no difference.
fn integer(value: &Node, text: &str) -> Option<Node> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to be a whole number within 2^53"
    )]
    match value {
        Node::Float(number) if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 => {
            Some(Node::Int(*number as i64))
        }
        _ => text.parse().ok().map(Node::Int),
    }
}

/// The value that tells one workload's pods from all others: a hash of the custom resource and of the workload's kind
/// and name, since pod selectors can never be changed and names may be longer than a label value.
pub fn workload_label(
    owner_kind: &GroupKind,
    owner: &ObjectKey,
    kind: &GroupKind,
    name: &str,
) -> String {
    let namespace = owner.namespace.as_deref().unwrap_or_default();
    hash_text(&format!(
        "{owner_kind}\n{namespace}\n{}\n{kind}\n{name}",
        owner.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_come_from_text_and_from_whole_floats_only() {
        let int = |node| coerce(node, Coerce::Int);
        assert_eq!(int(Node::from(" 8080 ")), Ok(Some(Node::Int(8080))));
        assert_eq!(int(Node::Float(3.0)), Ok(Some(Node::Int(3))));
        assert_eq!(int(Node::Float(3.5)), Err("an integer"));
        assert_eq!(int(Node::from("0644")), Ok(Some(Node::Int(644))));
        assert_eq!(int(Node::from("many")), Err("an integer"));
        assert_eq!(int(Node::Null), Ok(None));
    }

    #[test]
    fn text_is_kept_as_it_is() {
        assert_eq!(
            coerce(Node::from(" 0644\n"), Coerce::Text),
            Ok(Some(Node::from(" 0644\n")))
        );
        assert_eq!(
            coerce(Node::Int(1_000_000), Coerce::Text),
            Ok(Some(Node::from("1000000")))
        );
        assert_eq!(coerce(Node::Null, Coerce::Text), Ok(Some(Node::from(""))));
    }

    #[test]
    fn a_named_port_stays_text() {
        assert_eq!(
            coerce(Node::from("http"), Coerce::IntOrText),
            Ok(Some(Node::from("http")))
        );
        assert_eq!(
            coerce(Node::from("80"), Coerce::IntOrText),
            Ok(Some(Node::Int(80)))
        );
    }

    #[test]
    fn workloads_of_one_name_in_two_kinds_have_two_labels() {
        let owner = ObjectKey {
            namespace: Some("shop".into()),
            name: "web".into(),
        };
        let label = |kind: &str| {
            workload_label(
                &GroupKind::parse(kind),
                &owner,
                &GroupKind::parse("Deployment.apps"),
                "web",
            )
        };
        assert_ne!(label("Website.demo"), label("Shop.demo"));
        assert!(label("Website.demo").len() <= 63);
    }
}
