//! Target namespaces: decides if a child may be created in the namespace that its custom resource requests.
//!
//! ```text
//!  Reach::Fixed, the own namespace, `allowedTargets` has the name ──► yes
//!  a label selector ──► the Namespace is read: its labels match ────► yes
//!  Reach::Created ──► yes, if the Namespace belongs to this custom resource: the executor checks the existing one
//!  anything else ───► refused: no object is written there
//! ```

use super::{generated_secret::missing_answer, object::NamespaceContext, pass::Pass};
use crate::reconcile::{
    reason::Reason,
    render::RenderError,
    sources::{Answer, Answers, Read},
};
use orkestra_object::value::{Key, Node};
use orkestra_plan::{ChildKey, ChildPlan, GroupKind, ObjectKey, Reach};

/// The requirement of a child's namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Permit {
    /// No requirement.
    Granted,
    /// The namespace has to be a child of the same custom resource.
    IfCreated(ChildKey),
    /// This must be read first.
    Needs(Read),
}

impl Pass<'_, '_> {
    /// Returns the Namespace that has to be a child of the same custom resource for the child `key` to be created.
    pub(crate) fn permit(
        &mut self,
        declared: &ChildPlan,
        key: &ChildKey,
    ) -> Result<Option<ChildKey>, RenderError> {
        let place = NamespaceContext {
            plan: self.plan,
            scopes: self.scopes,
            observed: self.observed,
        };
        match permit(place, &self.observed.answers, declared, key)? {
            Permit::Granted => Ok(None),
            Permit::IfCreated(namespace) => Ok(Some(namespace)),
            Permit::Needs(read) => {
                self.answer(read);
                Err(missing_answer(&declared.path))
            }
        }
    }
}

/// Returns whether `declared` may be created as `key`.
///
/// # Errors
/// [`Reason::TargetRefused`] if it may not, [`Reason::Unavailable`] if that is unknown.
pub(crate) fn permit(
    place: NamespaceContext<'_>,
    answers: &Answers,
    declared: &ChildPlan,
    key: &ChildKey,
) -> Result<Permit, RenderError> {
    let Some(namespace) = &key.object.namespace else {
        return Ok(Permit::Granted);
    };
    let own = place.observed.cr.id.key.namespace.as_deref();
    let targets = &place.plan.targets;
    let is_free = declared.reach == Reach::Fixed
        || own == Some(&**namespace)
        // Administrators write cluster-scoped custom resources: only the declaration counts.
        || (own.is_none() && targets.is_empty())
        || targets.permits_name(namespace);
    if is_free {
        return Ok(Permit::Granted);
    }
    let object = namespace_key(namespace);
    let failure = |reason, message| RenderError {
        path: key.to_string().into(),
        message,
        reason,
    };
    if !targets.selectors.is_empty() {
        let read = Read::Object(object.clone());
        match answers.get(&read) {
            None => return Ok(Permit::Needs(read)),
            Some(Answer::Ready(found)) if targets.permits_labels(labels(found)) => {
                return Ok(Permit::Granted);
            }
            Some(Answer::Unavailable(why)) if declared.reach == Reach::Chosen => {
                let message =
                    format!("the labels of namespace `{namespace}` cannot be read: {why}");
                return Err(failure(Reason::Unavailable, message));
            }
            Some(_) => {}
        }
    }
    if declared.reach == Reach::Created {
        return Ok(Permit::IfCreated(object));
    }
    Err(failure(Reason::TargetRefused, not_permitted(namespace)))
}

/// Explains why nothing is created in a namespace that is neither permitted nor a child of the same custom resource.
pub fn not_created(namespace: &str) -> String {
    format!(
        "namespace `{namespace}` was not created for this resource, and `allowedTargets` does not permit it"
    )
}

/// Explains why a child is not created that requires another one of the same custom resource.
pub fn lacks(required: &ChildKey) -> String {
    let ChildKey { kind, object } = required;
    if *kind == GroupKind::parse("Namespace") {
        return not_created(&object.name);
    }
    format!(
        "{} `{}` was not created for this resource: a binding grants no other role of that name",
        kind.kind, object.name
    )
}

fn not_permitted(namespace: &str) -> String {
    format!("`allowedTargets` does not permit namespace `{namespace}`")
}

fn namespace_key(name: &Key) -> ChildKey {
    ChildKey {
        kind: GroupKind::parse("Namespace"),
        object: ObjectKey {
            namespace: None,
            name: name.clone(),
        },
    }
}

fn labels(namespace: &Node) -> &Node {
    namespace.meta("labels").unwrap_or(&Node::Null)
}
