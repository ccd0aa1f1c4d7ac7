//! The permissions that children grant to others, which RBAC escalation prevention requires the runtime to have.
//!
//! Source: Kubernetes, "Privilege escalation prevention and bootstrapping".

use super::CollectedPermissions;
use crate::{
    ChildKey, ChildPlan, GroupKind, Leaf, ObjectKey, ObjectNamespaces, ObjectTree, OperatorPlan,
};
use orkestra_language::api::names;
use orkestra_object::value::Node;

/// The API group of roles and bindings.
const RBAC: &str = "rbac.authorization.k8s.io";

/// Adds the permissions that the operator's roles and bindings grant. What depends on a custom resource is unknown in advance
/// and counts as every permission.
pub(crate) fn add(collected: &mut CollectedPermissions, operator: &OperatorPlan) {
    for child in &operator.children {
        let places = operator.child_places(&child.kind.group_kind(), false);
        let is_derived = match (&*child.kind.group, &*child.kind.kind) {
            (RBAC, "Role" | "ClusterRole") => grant(collected, &places, child),
            (RBAC, "RoleBinding" | "ClusterRoleBinding") => {
                bind(collected, operator, &places, child)
            }
            // Its operators would have whatever permissions the runtime has, in any namespace.
            (names::GROUP, "Katalog" | "Komposer" | "Motif") => {
                collected.add_underived(&ObjectNamespaces::All);
                true
            }
            _ => true,
        };
        if !is_derived {
            collected.add_underived(&places);
        }
    }
}

/// Adds the permissions of a role; false if they are not all literal.
fn grant(
    collected: &mut CollectedPermissions,
    places: &ObjectNamespaces,
    role: &ChildPlan,
) -> bool {
    let mut is_derived = role.copy.is_none() && is_known(&role.body, AGGREGATION) == Some(false);
    let rules = match part(&role.body, RULES) {
        _ if is_patched(&role.body, RULES) => None,
        None => is_known(&role.body, RULES).map(|_| Vec::new()),
        Some(TreePart::Fixed(node)) => node.as_list().map(|list| list.iter().collect()),
        Some(TreePart::Tree(ObjectTree::List(items))) => {
            is_derived &= items
                .iter()
                .all(|item| matches!(item, ObjectTree::Fixed(_)));
            let fixed = items.iter().filter_map(|item| match item {
                ObjectTree::Fixed(node) => Some(node),
                _ => None,
            });
            Some(fixed.collect())
        }
        Some(TreePart::Tree(_)) => None,
    };
    let Some(rules) = rules else { return false };
    for rule in rules {
        is_derived &= rule_of(collected, places, rule);
    }
    is_derived
}

/// The field with the rules of a role.
const RULES: &str = "rules";
/// The field by which a `ClusterRole` takes the rules of others.
const AGGREGATION: &str = "aggregationRule";

/// Adds the permission to bind a role from elsewhere, whose rules are unknown here; false if the role is unknown, too. The rules
/// of a role of the same operator are known, and holding them suffices: a pass creates the binding only while that role is a child
/// of the same custom resource, see [`own_role`].
fn bind(
    collected: &mut CollectedPermissions,
    operator: &OperatorPlan,
    places: &ObjectNamespaces,
    binding: &ChildPlan,
) -> bool {
    if is_patched(&binding.body, ROLE_REF) {
        return false;
    }
    let Some(role) = part(&binding.body, ROLE_REF) else {
        return false;
    };
    let (Some(kind), Some(name)) = (source(role, "kind"), source(role, "name")) else {
        return false;
    };
    if binds_own_role(binding, &operator.children) {
        return true;
    }
    let resource = match kind {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        _ => return false,
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
    let is_derived = !names.is_empty();
    for name in names {
        collected.add_named(places, RBAC, resource, &[name], ["bind"]);
    }
    is_derived
}

/// The field of a binding that names its role.
const ROLE_REF: &str = "roleRef";

/// True if the binding `child` is for a role that the same operator declares.
fn binds_own_role(child: &ChildPlan, children: &[ChildPlan]) -> bool {
    let Some(role) = part(&child.body, ROLE_REF).filter(|_| is_binding(child)) else {
        return false;
    };
    let (kind, name) = (source(role, "kind"), source(role, "name"));
    kind.zip(name)
        .is_some_and(|(kind, name)| makes(children, kind, name))
}

fn is_binding(child: &ChildPlan) -> bool {
    &*child.kind.group == RBAC && matches!(&*child.kind.kind, "RoleBinding" | "ClusterRoleBinding")
}

/// Returns the role that has to be a child of the same custom resource for the binding `object`, rendered from `declared` as
/// `key`, to be created: the author was asked for the permissions of that role, and not for the permission to bind any other
/// of its name. `None` if `declared` is not such a binding.
pub fn own_role(
    (declared, children): (&ChildPlan, &[ChildPlan]),
    key: &ChildKey,
    object: &Node,
) -> Option<ChildKey> {
    if !binds_own_role(declared, children) {
        return None;
    }
    let role = object.get(ROLE_REF);
    let text = |field: &str| role.and_then(|role| role.get(field)).and_then(Node::as_str);
    let kind = text("kind").unwrap_or_default();
    Some(ChildKey {
        kind: GroupKind {
            group: RBAC.into(),
            kind: kind.into(),
        },
        object: ObjectKey {
            namespace: key.object.namespace.clone().filter(|_| kind == "Role"),
            name: text("name").unwrap_or_default().into(),
        },
    })
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
pub fn chosen_role<'a>(child: &'a ChildPlan, children: &[ChildPlan]) -> Option<&'a Leaf> {
    let role = part(&child.body, ROLE_REF).filter(|_| is_binding(child))?;
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

/// Adds the permissions of a literal rule; false if it has others than on resources.
fn rule_of(collected: &mut CollectedPermissions, places: &ObjectNamespaces, rule: &Node) -> bool {
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
    texts("nonResourceURLs").is_empty()
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

/// Returns whether an object has the key; `None` if that depends on an expression.
fn is_known(tree: &ObjectTree, key: &str) -> Option<bool> {
    match tree {
        ObjectTree::Fixed(node) => Some(node.get(key).is_some()),
        ObjectTree::Map(entries) | ObjectTree::Part(entries) => {
            Some(entries.iter().any(|(known, _)| &**known == key))
        }
        ObjectTree::Patched(parts) => Some(is_known(&parts.0, key)? || is_known(&parts.1, key)?),
        _ => None,
    }
}

/// True if the value under a key is merged from an object and its patch.
fn is_patched(tree: &ObjectTree, key: &str) -> bool {
    let ObjectTree::Patched(parts) = tree else {
        return false;
    };
    is_known(&parts.0, key) != Some(false) && is_known(&parts.1, key) != Some(false)
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
