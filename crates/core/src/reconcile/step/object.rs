//! A child's name, and the child as it shall be.

use super::{Failure, Rendered, pass::Pass};
use crate::{
    plan::{ChildKey, ChildPlan, Leaf, Mode, NameRule, ObjectKey},
    reconcile::{marks, reason::Reason, render::RenderError},
    value::{Node, hash},
};

impl Pass<'_, '_> {
    /// Which object a declaration means.
    pub(super) fn key(&mut self, declared: &ChildPlan) -> Result<ChildKey, Failure> {
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
        let name = self.renderer.text(&declared.name)?;
        check_name(declared.name_rule, &declared.name, &name)?;
        let namespace = if namespaced {
            self.namespace(declared)?
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

    /// The declared namespace; where that is left out, the custom resource's own.
    fn namespace(&mut self, declared: &ChildPlan) -> Result<Option<Box<str>>, Failure> {
        if let Some(leaf) = &declared.namespace {
            let text = self.renderer.text(leaf)?;
            if !text.is_empty() {
                check_name(NameRule::Label1123, leaf, &text)?;
                return Ok(Some(text.into()));
            }
        }
        Ok(self.observed.cr.id.key.namespace.clone())
    }

    /// The whole object of a declaration.
    pub(super) fn render(
        &mut self,
        key: &ChildKey,
        declared: &ChildPlan,
        index: usize,
    ) -> Result<Rendered, RenderError> {
        let mut object = self.body(key, declared)?;
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
    fn body(&mut self, key: &ChildKey, declared: &ChildPlan) -> Result<Node, RenderError> {
        let rendered = if declared.mode == Mode::Once {
            let purpose = format!("{} {key}", self.observed.cr.id.uid);
            let entropy = self.entropy.fork(&purpose);
            self.renderer.random_tree(&declared.body, &entropy)
        } else {
            self.renderer.tree(&declared.body)
        };
        Ok(rendered?.unwrap_or_default())
    }
}

fn check_name(rule: NameRule, leaf: &Leaf, name: &str) -> Result<(), Failure> {
    rule.check(name).map_err(|message| Failure {
        reason: Reason::InvalidName,
        at: leaf.path.to_string(),
        message,
    })
}
