//! Renders trees with expressions into objects.

use std::borrow::Cow;

use super::{
    failure::Failure, gate_effects::GateEffects, reason::Reason, record::Observed,
    template_data::TemplateData,
};
use orkestra_language::api::names;
use orkestra_object::value::{Key, Map, Node, hash_text};
use orkestra_plan::{
    Chosen, GroupKind, Leaf, ListKeys, ObjectKey, ObjectTree, OperatorPlan, OwnerPart,
    TypeMismatch, container_name, patch::merged, tagged_image,
};
use orkestra_template::{Data, Entropy, EvalBudget, EvalErrorKind};

/// Why a template could not be rendered: the custom resource or the Katalog must change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct RenderError {
    /// The field in the Katalog.
    pub path: Box<str>,
    /// The problem, without a value of a Secret.
    pub message: String,
    /// The reason to report.
    pub reason: Reason,
}

impl From<RenderError> for Failure {
    fn from(error: RenderError) -> Self {
        Self {
            reason: error.reason,
            at: error.path.into(),
            message: error.message,
        }
    }
}

/// The shared context of a pass's renderings.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The custom resource's kind and key, which name workloads.
    pub owner: (&'a GroupKind, &'a ObjectKey),
    /// The data of the pass beside custom resource and children.
    pub sources: &'a TemplateData,
    /// When the result of a condition changes.
    pub effects: &'a GateEffects,
}

impl<'a> Frame<'a> {
    /// Returns a renderer of `data` in this frame.
    pub(crate) fn renderer<'d>(
        self,
        data: &'a Data<'d>,
        budget: &'a mut EvalBudget,
    ) -> Renderer<'a, 'd> {
        Renderer {
            data,
            budget,
            frame: self,
        }
    }
}

/// The data for the frames of one evaluation of a custom resource.
pub(crate) struct Setting<'a> {
    owner: (GroupKind, &'a ObjectKey),
    /// When the result of an evaluated condition changes.
    pub(crate) effects: GateEffects,
}

impl<'a> Setting<'a> {
    /// Creates the setting for the observed custom resource, without results of conditions.
    pub(crate) fn of(plan: &OperatorPlan, observed: &'a Observed) -> Self {
        Self {
            owner: (plan.resource.group_kind(), &observed.cr.id.key),
            effects: GateEffects::default(),
        }
    }

    /// Returns the frame, with data beside custom resource and children.
    pub(crate) fn frame<'s>(&'s self, sources: &'s TemplateData) -> Frame<'s> {
        Frame {
            owner: (&self.owner.0, self.owner.1),
            sources,
            effects: &self.effects,
        }
    }
}

/// Renders templates with their data, the budget of the pass, and its frame.
pub struct Renderer<'a, 'd> {
    /// The data roots.
    pub data: &'a Data<'d>,
    /// The shared budget of the pass.
    pub budget: &'a mut EvalBudget,
    /// The frame of the pass.
    pub frame: Frame<'a>,
}

impl Renderer<'_, '_> {
    /// Renders one leaf; none if the field is omitted.
    ///
    /// # Errors
    /// [`RenderError`] if the template fails or its result does not fit the field.
    pub fn leaf(&mut self, leaf: &Leaf) -> Result<Option<Node>, RenderError> {
        if let Some(message) = self.frame.sources.why_not(leaf.template.reads()) {
            return Err(RenderError {
                path: leaf.path.clone().into(),
                message,
                reason: Reason::Unavailable,
            });
        }
        let value = leaf
            .template
            .eval(self.data, self.budget)
            .map_err(|error| RenderError {
                path: leaf.path.clone().into(),
                message: error.to_string(),
                reason: if error.kind == EvalErrorKind::Budget {
                    Reason::BudgetExhausted
                } else {
                    Reason::TemplateFailed
                },
            })?;
        if let Cow::Borrowed(part) = &value {
            self.charge(part, &leaf.path)?;
        }
        leaf.coerce
            .apply(value.into_owned())
            .map_err(|mismatch| RenderError {
                path: leaf.path.clone().into(),
                message: format!(
                    "`{}` must return {}",
                    leaf.template.source(),
                    wanted(&mismatch)
                ),
                reason: Reason::WrongType,
            })
    }

    /// Charges for a copy of a part of the data: what one value of the custom resource takes, hundreds of children may take.
    fn charge(&mut self, part: &Node, path: &str) -> Result<(), RenderError> {
        let charged = self.budget.take(part.heap_bytes());
        charged.map_err(|_| RenderError {
            path: path.into(),
            message: "the objects of this entry contain too much data".to_owned(),
            reason: Reason::BudgetExhausted,
        })
    }

    /// Renders a leaf as trimmed text, for names and operands.
    ///
    /// # Errors
    /// As [`Renderer::leaf`].
    pub fn text(&mut self, leaf: &Leaf) -> Result<String, RenderError> {
        Ok(self
            .leaf(leaf)?
            .map(|node| node.to_text().trim().to_owned())
            .unwrap_or_default())
    }

    /// Renders a tree; none if it is omitted.
    ///
    /// # Errors
    /// The error of the first leaf that cannot be rendered.
    pub fn tree(&mut self, tree: &ObjectTree) -> Result<Option<Node>, RenderError> {
        match tree {
            ObjectTree::Fixed(node) => Ok(Some(node.clone())),
            ObjectTree::Leaf(leaf) => self.leaf(leaf),
            ObjectTree::Map(entries) => Ok(Some(self.map(entries)?)),
            ObjectTree::Part(entries) => {
                let Some((first, _)) = entries.first() else {
                    return Ok(None);
                };
                let part = self.map(entries)?;
                Ok(part.get(first).is_some().then_some(part))
            }
            ObjectTree::List(items) => {
                let mut rendered = Vec::with_capacity(items.len());
                for item in items {
                    rendered.extend(self.tree(item)?);
                }
                Ok((!rendered.is_empty()).then(|| Node::List(rendered.into())))
            }
            ObjectTree::Joined(parts) => {
                let mut joined = None;
                for part in parts {
                    joined = super::join::joined(joined, self.tree(part)?);
                }
                Ok(joined)
            }
            ObjectTree::Image(parts) => {
                let (image, tag) = (self.text(&parts.0)?, self.text(&parts.1)?);
                let image = tagged_image(&image, &tag);
                Ok((!image.is_empty()).then(|| Node::from(image)))
            }
            ObjectTree::Patched(parts) => {
                let Some(object) = self.tree(&parts.0)? else {
                    return Ok(None);
                };
                Ok(Some(patched(object, self.tree(&parts.1)?, &parts.2)))
            }
            ObjectTree::Chosen(chosen) => self.chosen(chosen),
            ObjectTree::ContainerName(name) => {
                Ok(Some(Node::from(container_name(&self.text(name)?))))
            }
            ObjectTree::Owner(part) => {
                let (kind, key) = self.frame.owner;
                let text = match part {
                    OwnerPart::Kind => kind.kind.to_lowercase(),
                    OwnerPart::Name => key.name.to_string(),
                };
                Ok(Some(Node::from(names::label_value(&text))))
            }
            ObjectTree::Workload(workload) => {
                let name = self.text(&workload.1)?;
                Ok(Some(Node::from(workload_label(
                    self.frame.owner.0,
                    self.frame.owner.1,
                    &workload.0,
                    &name,
                ))))
            }
        }
    }

    /// Renders a tree whose templates may draw random bytes from this source.
    ///
    /// # Errors
    /// As [`Renderer::tree`].
    pub(crate) fn random_tree(
        &mut self,
        tree: &ObjectTree,
        entropy: &Entropy,
    ) -> Result<Option<Node>, RenderError> {
        let data = self.data.clone().random(entropy);
        self.frame.renderer(&data, self.budget).tree(tree)
    }

    /// Renders the value in the profile that the custom resource names.
    fn chosen(&mut self, chosen: &Chosen) -> Result<Option<Node>, RenderError> {
        let Chosen { name, options } = chosen;
        let named = self.text(name)?.to_lowercase();
        let Some((_, option)) = options.iter().find(|(name, _)| **name == *named) else {
            let known: Vec<&str> = options.iter().map(|(name, _)| &**name).collect();
            let message = format!(
                "`{}` names no profile; the profiles are {}",
                name.template.source(),
                known.join(", ")
            );
            return Err(RenderError {
                path: name.path.clone().into(),
                message,
                reason: Reason::TemplateFailed,
            });
        };
        match option {
            Some(tree) => self.tree(tree),
            None => Ok(None),
        }
    }

    fn map(&mut self, entries: &[(Key, ObjectTree)]) -> Result<Node, RenderError> {
        let mut fields = Vec::with_capacity(entries.len());
        for (key, child) in entries {
            if let Some(node) = self.tree(child)? {
                fields.push((Key::clone(key), node));
            }
        }
        Ok(Node::Map(fields.into_iter().collect::<Map>()))
    }
}

/// Returns the object merged with the patch, if there is one.
pub(crate) fn patched(object: Node, patch: Option<Node>, lists: &ListKeys) -> Node {
    match patch {
        Some(patch @ Node::Map(_)) => merged(object, &patch, lists),
        _ => object,
    }
}

/// Returns what a field accepts, from the reason why a value does not fit: without the value, which may be secret.
pub(crate) fn wanted(mismatch: &TypeMismatch) -> &'static str {
    match mismatch {
        TypeMismatch::Type { expected, .. } => expected,
        TypeMismatch::Port(_) => "a port's number, 1 to 65535",
    }
}

/// Returns the label value that distinguishes one workload's pods from all others: a hash of the custom resource and of the
/// workload's kind and name, since pod selectors are immutable and names may be longer than a label value.
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
