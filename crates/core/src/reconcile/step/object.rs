//! A child's name, and the child as it shall be.

use super::{Failure, Rendered, pass::Pass};
use crate::{
    plan::{ChildKey, ChildPlan, Leaf, NameRule, ObjectKey},
    reconcile::{
        marks,
        reason::Reason,
        render::{RenderError, Renderer},
    },
    value::{Node, hash},
};

impl Pass<'_, '_> {
    /// Which object a declaration means.
    pub(super) fn key(
        &self,
        renderer: &mut Renderer<'_, '_>,
        declared: &ChildPlan,
    ) -> Result<ChildKey, Failure> {
        let kind = declared.kind.group_kind();
        let Some(namespaced) = self.scopes.get(&kind).copied() else {
            return Err(Failure {
                reason: Reason::KindNotServed,
                at: declared.path.to_string(),
                message: format!(
                    "the API server serves no {kind} in version {}; install its CRD",
                    declared.kind.version
                ),
            });
        };
        let name = renderer.text(&declared.name)?;
        self.check_name(declared, &declared.name, (declared.name_rule, &name))?;
        let namespace = if namespaced {
            self.namespace(renderer, declared)?
        } else {
            None
        };
        if namespaced && namespace.is_none() {
            return Err(Failure {
                reason: Reason::InvalidName,
                at: declared.path.to_string(),
                message: format!(
                    "{kind} lives in a namespace and {} does not: say `namespace`",
                    self.plan.resource.kind
                ),
            });
        }
        Ok(ChildKey {
            kind,
            object: ObjectKey {
                namespace,
                name: name.into(),
            },
        })
    }

    /// Whether the declaration is one of several, of which this has no namespace to be in.
    pub(super) fn is_nowhere(renderer: &mut Renderer<'_, '_>, declared: &ChildPlan) -> bool {
        let leaf = declared.namespace.as_ref().filter(|_| declared.spread);
        // What cannot be rendered is told with the name.
        leaf.is_some_and(|leaf| renderer.text(leaf).is_ok_and(|text| text.is_empty()))
    }

    /// The declared namespace; where that is left out, the custom resource's own.
    fn namespace(
        &self,
        renderer: &mut Renderer<'_, '_>,
        declared: &ChildPlan,
    ) -> Result<Option<Box<str>>, Failure> {
        if let Some(leaf) = &declared.namespace {
            let text = renderer.text(leaf)?;
            if !text.is_empty() {
                self.check_name(declared, leaf, (NameRule::Label1123, &text))?;
                return Ok(Some(text.into()));
            }
        }
        Ok(self.observed.cr.id.key.namespace.clone())
    }

    /// The whole object of a declaration.
    pub(super) fn render(
        &mut self,
        renderer: &mut Renderer<'_, '_>,
        key: &ChildKey,
        declared: &ChildPlan,
        index: usize,
    ) -> Result<Rendered, RenderError> {
        let mut object = self.body(renderer, key, declared)?;
        if let Some(copy) = &declared.copy {
            self.copy(renderer, &mut object, key, (declared, copy))?;
        }
        if let Some(lasting) = &declared.lasting {
            self.generate(renderer, &mut object, key, lasting)?;
        }
        if declared.rolls {
            self.roll(&mut object, key, &declared.path)?;
        }
        self.marks.put(&mut object, key);
        let hash = hash(&object);
        marks::put_applied(&mut object, &hash);
        Ok(Rendered {
            key: key.clone(),
            declared: index,
            object,
            hash,
        })
    }

    /// The object without what ownership adds. What is made once may draw random bytes: each child its own, so that none
    /// depends on what else a pass makes.
    fn body(
        &self,
        renderer: &mut Renderer<'_, '_>,
        key: &ChildKey,
        declared: &ChildPlan,
    ) -> Result<Node, RenderError> {
        let rendered = if declared.draws_once() {
            let mut purpose = format!("{} {key}", self.observed.cr.id.uid);
            if self.observed.child(key).is_some() {
                // Made anew, of the same source: other bytes than before.
                purpose = format!("{purpose} {}", self.now);
            }
            let entropy = self.entropy.fork(&purpose);
            renderer.random_tree(&declared.body, &entropy)
        } else {
            renderer.tree(&declared.body)
        };
        Ok(rendered?.unwrap_or_default())
    }

    /// Whether a name that `leaf` gave, for `declared`, is legal. One that is made of a Secret is not told.
    pub(super) fn check_name(
        &self,
        declared: &ChildPlan,
        leaf: &Leaf,
        (rule, name): (NameRule, &str),
    ) -> Result<(), RenderError> {
        rule.check(name).map_err(|message| RenderError {
            path: leaf.path.clone(),
            message: if self.plan.reads_secrets(declared.import, &leaf.template) {
                "this gives no legal name, which is withheld: it is made of a Secret".to_owned()
            } else {
                message
            },
            reason: Reason::InvalidName,
        })
    }
}
