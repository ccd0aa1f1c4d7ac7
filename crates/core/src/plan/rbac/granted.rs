//! The permissions that children grant to others, which RBAC escalation prevention requires the runtime to have.
//!
//! Source: Kubernetes, "Privilege escalation prevention and bootstrapping".

use super::CollectedPermissions;
use crate::{
    plan::{ChildPlan, Leaf, ObjectNamespaces, ObjectTree, OperatorPlan},
    value::Node,
};

/// The API group of roles and bindings.
const RBAC: &str = "rbac.authorization.k8s.io";

/// Adds the permissions that the operator's roles and bindings grant, as far as they are literal. Those that depend on a
/// custom resource are unknown in advance; missing ones are reported on that resource.
pub(super) fn add(collected: &mut CollectedPermissions, operator: &OperatorPlan) {
    for child in operator
        .children
        .iter()
        .filter(|child| &*child.kind.group == RBAC)
    {
        let places = operator.child_places(&child.kind.group_kind(), false);
        match &*child.kind.kind {
            "Role" | "ClusterRole" => {
                for rule in fixed_items(&child.body, "rules") {
                    rule_of(collected, &places, rule);
                }
            }
            "RoleBinding" | "ClusterRoleBinding" => bind(collected, operator, &places, child),
            _ => {}
        }
    }
}

/// Adds the permission to bind a role from elsewhere, whose rules are unknown here. The rules of a role of the same
/// operator are known, and holding them suffices.
fn bind(
    collected: &mut CollectedPermissions,
    operator: &OperatorPlan,
    places: &ObjectNamespaces,
    binding: &ChildPlan,
) {
    let Some(role) = part(&binding.body, "roleRef") else {
        return;
    };
    let (Some(kind), Some(name)) = (source(role, "kind"), source(role, "name")) else {
        return;
    };
    if makes(&operator.children, kind, name) {
        return;
    }
    let resource = match kind {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        _ => return,
    };
    let names: Vec<String> = if name.contains("{{") {
        binding
            .bound_roles
            .iter()
            .map(ToString::to_string)
            .collect()
    } else {
        vec![name.to_owned()]
    };
    for name in names {
        collected.add_named(places, RBAC, resource, &[name], ["bind"]);
    }
}

/// True if one of the children is the role of that kind and name, which is literal or the same template.
fn makes(children: &[ChildPlan], kind: &str, name: &str) -> bool {
    children.iter().any(|child| {
        &*child.kind.group == RBAC
            && *child.kind.kind == *kind
            && child.name.template.source().trim() == name
    })
}

/// Returns the template of the role that the binding `child` grants, if the custom resource chooses it: it is neither
/// literal nor a role that the same operator creates.
pub(crate) fn chosen_role<'a>(child: &'a ChildPlan, children: &[ChildPlan]) -> Option<&'a Leaf> {
    let is_binding = matches!(&*child.kind.kind, "RoleBinding" | "ClusterRoleBinding");
    if &*child.kind.group != RBAC || !is_binding {
        return None;
    }
    let role = part(&child.body, "roleRef")?;
    let TreePart::Tree(role_ref) = role else {
        return None;
    };
    let TreePart::Tree(ObjectTree::Leaf(leaf)) = part(role_ref, "name")? else {
        return None;
    };
    let kind = source(role, "kind")?;
    let name = leaf.template.source().trim();
    (name.contains("{{") && !makes(children, kind, name)).then_some(leaf)
}

fn rule_of(collected: &mut CollectedPermissions, places: &ObjectNamespaces, rule: &Node) {
    let texts = |key: &str| -> Vec<String> {
        let list = rule.get(key).and_then(Node::as_list).unwrap_or_default();
        list.iter()
            .map(|text| text.to_text().into_owned())
            .collect()
    };
    let (verbs, names) = (texts("verbs"), texts("resourceNames"));
    for group in texts("apiGroups") {
        for resource in texts("resources") {
            let verbs = verbs.iter().map(String::as_str);
            collected.add_named(places, &group, &resource, &names, verbs);
        }
    }
}

/// Returns the value under a key of an object; of a patched object, the value in the patch.
fn part<'a>(tree: &'a ObjectTree, key: &str) -> Option<TreePart<'a>> {
    match tree {
        ObjectTree::Fixed(node) => node.get(key).map(TreePart::Fixed),
        ObjectTree::Map(entries) | ObjectTree::Part(entries) => {
            let (_, below) = entries.iter().find(|(known, _)| &**known == key)?;
            Some(match below {
                ObjectTree::Fixed(node) => TreePart::Fixed(node),
                tree => TreePart::Tree(tree),
            })
        }
        ObjectTree::Patched(parts) => part(&parts.1, key).or_else(|| part(&parts.0, key)),
        _ => None,
    }
}

/// A part of a tree, with or without expressions.
#[derive(Clone, Copy)]
enum TreePart<'a> {
    Fixed(&'a Node),
    Tree(&'a ObjectTree),
}

/// Returns the items of a list that contain no expressions.
fn fixed_items<'a>(tree: &'a ObjectTree, key: &str) -> Vec<&'a Node> {
    match part(tree, key) {
        Some(TreePart::Fixed(node)) => node.as_list().unwrap_or_default().iter().collect(),
        Some(TreePart::Tree(ObjectTree::List(items))) => {
            let fixed = items.iter().filter_map(|item| match item {
                ObjectTree::Fixed(node) => Some(node),
                _ => None,
            });
            fixed.collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the text under a key, or its template.
fn source<'a>(part: TreePart<'a>, key: &str) -> Option<&'a str> {
    let text = match part {
        TreePart::Fixed(node) => node.get(key)?.as_str()?,
        TreePart::Tree(tree) => match self::part(tree, key)? {
            TreePart::Fixed(node) => node.as_str()?,
            TreePart::Tree(ObjectTree::Leaf(leaf)) => leaf.template.source(),
            TreePart::Tree(_) => return None,
        },
    };
    Some(text.trim())
}
