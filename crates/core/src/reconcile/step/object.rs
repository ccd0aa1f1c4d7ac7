//! A child's name, and the child as it shall be.

use super::{Failure, Rendered, Scopes, pass::Pass};
use crate::{
    plan::{ChildKey, ChildPlan, Leaf, Mode, NameRule, ObjectKey, OperatorPlan},
    reconcile::{
        marks,
        reason::Reason,
        record::Observed,
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
        let place = Place {
            plan: self.plan,
            scopes: self.scopes,
            observed: self.observed,
        };
        key_of(place, renderer, declared)
    }

    /// The whole object of a declaration.
    pub(super) fn render(
        &self,
        renderer: &mut Renderer<'_, '_>,
        key: &ChildKey,
        declared: &ChildPlan,
        index: usize,
    ) -> Result<Rendered, RenderError> {
        let mut object = self.body(renderer, key, declared)?;
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
        let rendered = if declared.mode == Mode::Once {
            let purpose = format!("{} {key}", self.observed.cr.id.uid);
            let entropy = self.entropy.fork(&purpose);
            renderer.random_tree(&declared.body, &entropy)
        } else {
            renderer.tree(&declared.body)
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

/// What says where a declaration's object lives.
#[derive(Clone, Copy)]
pub(in crate::reconcile) struct Place<'a> {
    pub(in crate::reconcile) plan: &'a OperatorPlan,
    pub(in crate::reconcile) scopes: &'a Scopes,
    pub(in crate::reconcile) observed: &'a Observed,
}

/// Which object a declaration means.
pub(in crate::reconcile) fn key_of(
    place: Place<'_>,
    renderer: &mut Renderer<'_, '_>,
    declared: &ChildPlan,
) -> Result<ChildKey, Failure> {
    let kind = declared.kind.group_kind();
    let failure = |reason, message| Failure {
        reason,
        at: declared.path.to_string(),
        message,
    };
    let Some(namespaced) = place.scopes.get(&kind).copied() else {
        let version = &declared.kind.version;
        let message =
            format!("the API server serves no {kind} in version {version}; install its CRD");
        return Err(failure(Reason::KindNotServed, message));
    };
    let name = renderer.text(&declared.name)?;
    check_name(declared.name_rule, &declared.name, &name)?;
    let namespace = if namespaced {
        let own = &place.observed.cr.id.key.namespace;
        Some(
            namespace(renderer, declared)?
                .or_else(|| own.clone())
                .ok_or_else(|| {
                    let owner = &place.plan.resource.kind;
                    let message = format!(
                        "{kind} lives in a namespace and {owner} does not: say `namespace`"
                    );
                    failure(Reason::InvalidName, message)
                })?,
        )
    } else {
        None
    };
    if let Some(refused) = namespace
        .as_deref()
        .filter(|namespace| place.plan.watched.restricted.contains(*namespace))
    {
        let message = format!("`restrictedNamespaces` has `{refused}`: nothing is made there");
        return Err(failure(Reason::RestrictedNamespace, message));
    }
    Ok(ChildKey {
        kind,
        object: ObjectKey {
            namespace,
            name: name.into(),
        },
    })
}

/// The declared namespace; none is the custom resource's own.
fn namespace(
    renderer: &mut Renderer<'_, '_>,
    declared: &ChildPlan,
) -> Result<Option<Box<str>>, Failure> {
    let Some(leaf) = &declared.namespace else {
        return Ok(None);
    };
    let text = renderer.text(leaf)?;
    if text.is_empty() {
        return Ok(None);
    }
    check_name(NameRule::Label1123, leaf, &text)?;
    Ok(Some(text.into()))
}
