//! Children that the API server has and the watches do not show.

use orkestra_cluster::requests::{ClusterError, Form, Scope};
use orkestra_engine::reconcile::{
    record::{ChildRecord, CrRecord, ObservedChild},
    step::Failure,
    waiting_for::{self, Unread},
};
use orkestra_language::api::names;
use orkestra_object::value::Node;

use super::{KeepReasons, child, delete};
use crate::{
    pass::{Pass, unread},
    shared::bound_plan::{BoundPlan, Kind},
};

/// Deletes the children that the API server has and the watches do not show: a watch may lag behind the one that showed the
/// deletion, or the label it selects by was removed, and nothing collects an object without an owner reference. Lists only
/// where such children are possible.
pub(crate) async fn hidden(pass: &Pass<'_>, cr: &CrRecord) -> KeepReasons {
    let mut left = KeepReasons::default();
    if cr.orphans() {
        return left;
    }
    for (kind, namespace) in may_hide(pass.bound, cr.id.key.namespace.is_some()) {
        let scope = Scope {
            namespace: namespace.map(str::to_owned),
            selector: Some(format!("{}={}", names::LABEL_OWNER_UID, cr.id.uid)),
            fields: None,
        };
        let mut next = None;
        loop {
            let page = uncollected_page(pass, cr, (kind, &scope), next.as_deref()).await;
            let found = match page {
                Ok((found, more)) => {
                    next = more;
                    found
                }
                // Its CRD was deleted, with all objects.
                Err(ClusterError::NotServed(_) | ClusterError::NotFound(_)) => break,
                Err(error) => {
                    left.failures.push(unlisted(kind, error));
                    break;
                }
            };
            for child in &found {
                left.look_again = true;
                if child.record.unread().is_some() {
                    left.failures.extend(unread::failure_of(child));
                } else {
                    left.note(child, delete(pass, cr, child).await);
                }
            }
            if next.is_none() {
                break;
            }
        }
    }
    left
}

/// Returns the failure for a kind whose children cannot be listed.
fn unlisted(kind: &Kind, error: ClusterError) -> Failure {
    let why = match error {
        ClusterError::Forbidden { message, .. } => Unread::Forbidden(message),
        other => Unread::Unavailable(other.to_string()),
    };
    waiting_for::unread(&kind.served().group_kind(), &why)
}

/// Returns one page of the children of `cr` that Kubernetes does not collect, and the continue token of the next one. The label
/// alone selects what is listed, and every user can set it on objects of any size: only metadata is requested, and only children
/// are remembered.
async fn uncollected_page(
    pass: &Pass<'_>,
    cr: &CrRecord,
    (kind, scope): (&Kind, &Scope),
    next: Option<&str>,
) -> Result<(Vec<ObservedChild>, Option<String>), ClusterError> {
    let group_kind = kind.served().group_kind();
    let (uid, manager) = (&cr.id.uid, &*pass.bound.manager);
    let owner = pass.bound.owner_mark(&cr.id);
    let mut found = Vec::new();
    let mut take = |object: Node| {
        let is_left = |child: &ObservedChild| {
            let record = &child.record;
            pass.bound.may_own(&owner, &group_kind, record)
                && (record.is_uncollected(uid, manager) || record.is_unread_and_uncollected(uid))
        };
        found.extend(child(&group_kind, &object).filter(is_left));
    };
    let how = (Form::Metadata, &ChildRecord::projection(&[]));
    let requests = &pass.shared.requests;
    let next = requests
        .list_page(how, kind.served(), scope, next, &mut take)
        .await?;
    Ok((found, next))
}

/// The kinds of children that may have no owner reference, in each namespace where they are watched. Owner references to a
/// cluster-scoped resource work in every namespace.
fn may_hide(bound: &BoundPlan, namespaced: bool) -> impl Iterator<Item = (&Kind, Option<&str>)> {
    let kinds = bound.kinds.iter().map(|kind| &**kind);
    let kinds = kinds.filter(move |kind| {
        let kind = kind.served().group_kind();
        bound.keeps_values(&kind) || (namespaced && bound.may_leave(&kind))
    });
    kinds.flat_map(|kind| kind.namespaces().map(move |namespace| (kind, namespace)))
}
