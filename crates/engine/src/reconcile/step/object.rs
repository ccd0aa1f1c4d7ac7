//! A child's name, and its wanted state.

use super::{Failure, Rendered, ServedScopes, pass::Pass};
use crate::reconcile::{
    child_metadata,
    reason::Reason,
    record::Observed,
    render::{RenderError, Renderer, patched},
};
use orkestra_language::api::names;
use orkestra_object::value::{Key, Map, Node, hash};
use orkestra_plan::{
    ChildKey, ChildPlan, Leaf, NameRule, ObjectKey, ObjectTree, OperatorPlan, rbac,
};

impl Pass<'_, '_> {
    /// Returns the key of a declaration's object.
    pub(crate) fn key(
        &self,
        renderer: &mut Renderer<'_, '_>,
        declared: &ChildPlan,
    ) -> Result<ChildKey, Failure> {
        let place = NamespaceContext {
            plan: self.plan,
            scopes: self.scopes,
            observed: self.observed,
        };
        key_of(place, renderer, declared)
    }

    /// True if the declaration is one of several namespaces, and this one renders to nothing.
    pub(crate) fn is_nowhere(renderer: &mut Renderer<'_, '_>, declared: &ChildPlan) -> bool {
        let leaf = declared.namespace.as_ref().filter(|_| declared.spread);
        // A rendering error is reported with the name.
        leaf.is_some_and(|leaf| renderer.text(leaf).is_ok_and(|text| text.is_empty()))
    }

    /// Renders the whole object of a declaration.
    pub(crate) fn render(
        &mut self,
        renderer: &mut Renderer<'_, '_>,
        key: &ChildKey,
        declared: &ChildPlan,
        index: usize,
    ) -> Result<Rendered, RenderError> {
        let mut object = self.body(renderer, key, declared)?;
        if let Some(generated) = &declared.generated {
            self.generate(renderer, &mut object, key, generated)?;
        }
        let scaled_from = match &declared.scale {
            Some(scale) => self.scale(renderer, &mut object, key, scale)?,
            None => None,
        };
        if declared.rolls {
            self.roll(&mut object, key, &declared.path)?;
        }
        let within = self.permit(declared, key)?;
        check_labels(declared, &object)?;
        if let Some(found) = declared.list_keys.duplicate(&object) {
            return Err(RenderError {
                path: declared.path.clone().into(),
                message: found.to_string(),
                reason: Reason::WrongType,
            });
        }
        let role = rbac::own_role((declared, &self.plan.children), key, &object);
        let requires = within.into_iter().chain(role).collect();
        let record = self.observed.child(key);
        let record = record.map(|record| &**record);
        self.marks
            .put(&mut object, key, (record, declared.keeps_values()));
        let hash = hash(&object);
        child_metadata::put_applied(&mut object, &hash);
        Ok(Rendered {
            key: key.clone(),
            declared: index,
            object,
            hash,
            requires,
            scaled_from,
        })
    }

    /// Renders the object without ownership metadata; a patch of a copy applies to the whole copy. A child that is created
    /// once may draw random bytes: each child its own, independent of other children in the pass.
    fn body(
        &mut self,
        renderer: &mut Renderer<'_, '_>,
        key: &ChildKey,
        declared: &ChildPlan,
    ) -> Result<Node, RenderError> {
        let entropy = declared.draws_once().then(|| {
            let mut purpose = format!("{} {key}", self.observed.cr.id.uid);
            if self.observed.child(key).is_some() {
                // Created again from the same source: other bytes than before.
                purpose = format!("{purpose} {}", self.now);
            }
            self.entropy.fork(&purpose)
        });
        let tree = |renderer: &mut Renderer<'_, '_>, tree| match &entropy {
            Some(entropy) => renderer.random_tree(tree, entropy),
            None => renderer.tree(tree),
        };
        let Some(copy) = &declared.copy else {
            return Ok(tree(renderer, &declared.body)?.unwrap_or_default());
        };
        let (own, patch) = match &declared.body {
            ObjectTree::Patched(parts) => (&parts.0, Some((&parts.1, &parts.2))),
            whole => (whole, None),
        };
        let mut object = tree(renderer, own)?.unwrap_or_default();
        self.copy(renderer, &mut object, key, (declared, copy))?;
        Ok(match patch {
            Some((patch, lists)) => patched(object, tree(renderer, patch)?, lists),
            None => object,
        })
    }
}

/// Checks the values of the rendered labels, of the object and of its pods, as the API server does.
fn check_labels(declared: &ChildPlan, object: &Node) -> Result<(), RenderError> {
    if declared.shows_secrets {
        return Ok(());
    }
    let spec = object.get("spec");
    let template = spec.and_then(|spec| spec.get("template"));
    for place in [Some(object), template].into_iter().flatten() {
        let labels = place.meta("labels").and_then(Node::as_map);
        for (key, value) in labels.into_iter().flat_map(Map::iter) {
            if let Err(why) = names::check_label_value(&value.to_text()) {
                return Err(RenderError {
                    path: declared.path.clone().into(),
                    message: format!("label `{key}`: {why}"),
                    reason: Reason::InvalidName,
                });
            }
        }
    }
    Ok(())
}

/// The context for the namespace of a declaration's object.
#[derive(Clone, Copy)]
pub(crate) struct NamespaceContext<'a> {
    pub(crate) plan: &'a OperatorPlan,
    pub(crate) scopes: &'a dyn ServedScopes,
    pub(crate) observed: &'a Observed,
}

/// Returns the key of a declaration's object.
pub(crate) fn key_of(
    place: NamespaceContext<'_>,
    renderer: &mut Renderer<'_, '_>,
    declared: &ChildPlan,
) -> Result<ChildKey, Failure> {
    let kind = declared.kind.group_kind();
    let failure = |reason, message| Failure {
        reason,
        at: declared.path.to_string(),
        message,
    };
    let Some(namespaced) = place.scopes.is_namespaced(&kind) else {
        let version = &declared.kind.version;
        let message =
            format!("the API server does not serve {kind} in version {version}; install its CRD");
        return Err(failure(Reason::KindNotServed, message));
    };
    let name = renderer.text(&declared.name)?;
    check_name(&declared.name, (declared.name_rule, &name))?;
    let namespace = if namespaced {
        let own = &place.observed.cr.id.key.namespace;
        Some(
            namespace(renderer, declared)?
                .or_else(|| own.clone())
                .ok_or_else(|| {
                    let owner = &place.plan.resource.kind;
                    let message = format!(
                        "{kind} is namespaced and {owner} is cluster-scoped: set `namespace`"
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
        let message = format!(
            "namespace `{refused}` is in `restrictedNamespaces`: no children are created there"
        );
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

/// Returns the declared namespace; none means the custom resource's own.
fn namespace(
    renderer: &mut Renderer<'_, '_>,
    declared: &ChildPlan,
) -> Result<Option<Key>, Failure> {
    let Some(leaf) = &declared.namespace else {
        return Ok(None);
    };
    let text = renderer.text(leaf)?;
    if text.is_empty() {
        return Ok(None);
    }
    check_name(leaf, (NameRule::Label1123, &text))?;
    Ok(Some(text.into()))
}

/// Checks a name that `leaf` rendered. The message may show it: the compiler refuses names with values of Secrets.
pub(crate) fn check_name(leaf: &Leaf, (rule, name): (NameRule, &str)) -> Result<(), RenderError> {
    rule.check(name).map_err(|message| RenderError {
        path: leaf.path.clone().into(),
        message,
        reason: Reason::InvalidName,
    })
}
