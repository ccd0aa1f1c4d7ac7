//! Trees with expressions become objects.

use super::{gate::Turns, reason::Reason, record::Observed, sources::Sources};
use crate::{
    api::names,
    plan::{Chosen, GroupKind, Leaf, Misfit, ObjectKey, OperatorPlan, OwnerPart, Tree},
    resources::{container_name, patch::merged, tagged_image},
    template::{Budget, Data, Entropy, EvalErrorKind},
    value::{Key, Map, Node, hash_text},
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

/// What is the same for all that a pass renders.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The custom resource's kind and key, which name workloads.
    pub owner: (&'a GroupKind, &'a ObjectKey),
    /// What the pass sees beside custom resource and children.
    pub sources: &'a Sources,
    /// When a condition turns.
    pub turns: &'a Turns,
}

/// What the frames of one look at a custom resource are made of.
pub(super) struct Setting<'a> {
    owner: (GroupKind, &'a ObjectKey),
    /// When a condition that was asked turns.
    pub(super) turns: Turns,
}

impl<'a> Setting<'a> {
    /// For the custom resource that is observed; nothing was asked yet.
    pub(super) fn of(plan: &OperatorPlan, observed: &'a Observed) -> Self {
        Self {
            owner: (plan.resource.group_kind(), &observed.cr.id.key),
            turns: Turns::default(),
        }
    }

    /// The frame, with what is seen beside custom resource and children.
    pub(super) fn frame<'s>(&'s self, sources: &'s Sources) -> Frame<'s> {
        Frame {
            owner: (&self.owner.0, self.owner.1),
            sources,
            turns: &self.turns,
        }
    }
}

/// Renders: the data that templates read, the budget of the pass, and its frame.
pub struct Renderer<'a, 'd> {
    /// The roots.
    pub data: &'a Data<'d>,
    /// One for the whole pass.
    pub budget: &'a mut Budget,
    /// The pass.
    pub frame: Frame<'a>,
}

impl Renderer<'_, '_> {
    /// Renders one leaf; nothing where the field is left out.
    ///
    /// # Errors
    /// [`RenderError`] when the template fails or its result does not fit the field.
    pub fn leaf(&mut self, leaf: &Leaf) -> Result<Option<Node>, RenderError> {
        if let Some(message) = self.frame.sources.why_not(leaf.template.reads()) {
            return Err(RenderError {
                path: leaf.path.clone(),
                message,
                reason: Reason::Unavailable,
            });
        }
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
        leaf.coerce
            .apply(value.into_owned())
            .map_err(|misfit| RenderError {
                path: leaf.path.clone(),
                message: format!("`{}` must give {}", leaf.template.source(), wanted(&misfit)),
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
            Tree::Image(parts) => {
                let (image, tag) = (self.text(&parts.0)?, self.text(&parts.1)?);
                let image = tagged_image(&image, &tag);
                Ok((!image.is_empty()).then(|| Node::from(image)))
            }
            Tree::Patched(parts) => {
                let Some(object) = self.tree(&parts.0)? else {
                    return Ok(None);
                };
                Ok(Some(patched(object, self.tree(&parts.1)?)))
            }
            Tree::Chosen(chosen) => self.chosen(chosen),
            Tree::ContainerName(name) => Ok(Some(Node::from(container_name(&self.text(name)?)))),
            Tree::Owner(part) => {
                let (kind, key) = self.frame.owner;
                let text = match part {
                    OwnerPart::Kind => kind.kind.to_lowercase(),
                    OwnerPart::Name => key.name.to_string(),
                };
                Ok(Some(Node::from(names::label_value(&text))))
            }
            Tree::Workload(workload) => {
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

    /// Renders a tree whose templates may draw random bytes, from this source.
    ///
    /// # Errors
    /// As [`Renderer::tree`].
    pub(crate) fn random_tree(
        &mut self,
        tree: &Tree,
        entropy: &Entropy,
    ) -> Result<Option<Node>, RenderError> {
        let data = self.data.clone().random(entropy);
        let mut renderer = Renderer {
            data: &data,
            budget: &mut *self.budget,
            frame: self.frame,
        };
        renderer.tree(tree)
    }

    /// What the profile has that the custom resource names.
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
                path: name.path.clone(),
                message,
                reason: Reason::TemplateFailed,
            });
        };
        match option {
            Some(tree) => self.tree(tree),
            None => Ok(None),
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
}

/// The object with what is merged into it, if anything is.
pub(super) fn patched(object: Node, patch: Option<Node>) -> Node {
    match patch {
        Some(patch @ Node::Map(_)) => merged(object, &patch),
        _ => object,
    }
}

/// What a field takes, from why a value does not fit: without the value, which may be secret.
pub(super) fn wanted(misfit: &Misfit) -> &'static str {
    match misfit {
        Misfit::Type { expected, .. } => expected,
        Misfit::Port(_) => "a port's number, 1 to 65535",
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
