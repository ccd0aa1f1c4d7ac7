//! The service accounts that pods run as: a pod has the permissions of its account, not of the user who creates it.

use crate::{ChildPlan, Leaf, OperatorPlan, tree::DeclaredValue};
use orkestra_object::value::Node;

/// The fields of a pod's spec that name its service account; the second is the deprecated name of the first.
const FIELDS: [&str; 2] = ["serviceAccountName", "serviceAccount"];

/// True if the pods of a child run as a service account that is neither the default one, which has no permissions of its own, nor
/// one that the same operator creates in the same namespace. `spec` is the path of the pod's spec.
pub(crate) fn is_of_another(operator: &OperatorPlan, child: &ChildPlan, spec: &[&str]) -> bool {
    let is_account = |other: &&ChildPlan| {
        let kind = other.kind.group_kind();
        kind.group.is_empty() && &*kind.kind == "ServiceAccount"
    };
    let is_beside = |other: &&ChildPlan| {
        let [own, other] = [child, *other].map(|child| child.namespace.as_ref().map(source));
        own == other
    };
    let accounts: Vec<&Leaf> = operator
        .children
        .iter()
        .filter(is_account)
        .filter(is_beside)
        .filter(|other| other.import == child.import)
        // The name of a hook's child is up to the hook: that another entry has the same template says nothing.
        .filter(|other| operator.hook_of(other.block).is_none())
        .map(|other| &other.name)
        .collect();
    let is_permitted = |value: DeclaredValue<'_>| {
        let text = match value {
            DeclaredValue::Fixed(Node::Str(text)) => &**text,
            DeclaredValue::Text(text) => text,
            DeclaredValue::Template(leaf) => source(leaf),
            DeclaredValue::Fixed(_) => return false,
        };
        let text = text.trim();
        matches!(text, "" | "default") || accounts.iter().any(|name| source(name) == text)
    };
    FIELDS.iter().any(|field| {
        let path = [spec, &[*field]].concat();
        child.body.may_have_other(&path, &is_permitted)
    })
}

fn source(leaf: &Leaf) -> &str {
    leaf.template.source().trim()
}
