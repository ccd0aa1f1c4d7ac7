//! The permissions that a Katalog derives, as attributes for `SubjectAccessReviews` of its author.

use std::fmt;

use orkestra_plan::{
    Plan,
    rbac::{self, RbacRule},
};

/// One permission: everything that a `SubjectAccessReview` asks.
///
/// Source: Kubernetes API reference, `ResourceAttributes` of `authorization.k8s.io/v1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission {
    /// The namespace; `None` is all.
    pub namespace: Option<String>,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural, or `*`.
    pub resource: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The name; `None` is all.
    pub name: Option<String>,
    /// The verb.
    pub verb: String,
}

impl Permission {
    /// Returns the permission to do everything in a namespace; `None` is all, and cluster-scoped objects.
    pub fn everything(namespace: Option<String>) -> Self {
        let all = || ALL.to_owned();
        Self {
            namespace,
            group: all(),
            resource: all(),
            subresource: String::new(),
            name: None,
            verb: all(),
        }
    }
}

/// Every group, resource or verb.
const ALL: &str = "*";

/// Returns the permissions that the operators of `plan` get by it, sorted and each once. Permissions that the runtime has
/// without any Katalog are not among them. Where a custom resource decides what is granted, that is everything.
pub fn derived_permissions(plan: &Plan) -> Vec<Permission> {
    let rbac::Permissions {
        cluster,
        namespaces,
        underived,
    } = rbac::permissions(plan);
    let cluster = cluster.iter().map(|rule| (None, rule));
    let single = namespaces.iter().flat_map(|(namespace, rules)| {
        let namespace = Some(namespace.to_string());
        rules.iter().map(move |rule| (namespace.clone(), rule))
    });
    let rules = cluster.chain(single);
    let mut all: Vec<Permission> = rules
        .flat_map(|(namespace, rule)| of_rule(namespace.as_ref(), rule))
        .collect();
    let underived = underived.into_iter();
    all.extend(underived.map(|namespace| Permission::everything(namespace.map(String::from))));
    all.sort();
    all.dedup();
    all
}

fn of_rule(namespace: Option<&String>, rule: &RbacRule) -> Vec<Permission> {
    let names: Vec<Option<&String>> = if rule.resource_names.is_empty() {
        vec![None]
    } else {
        rule.resource_names.iter().map(Some).collect()
    };
    let mut all = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            for name in &names {
                all.extend(rule.verbs.iter().map(|verb| Permission {
                    namespace: namespace.cloned(),
                    group: group.clone(),
                    resource: resource.to_owned(),
                    subresource: subresource.to_owned(),
                    name: name.cloned(),
                    verb: verb.clone(),
                }));
            }
        }
    }
    all
}

/// Displays as in `create clusterrolebindings.rbac.authorization.k8s.io`, followed by the name and the namespace if they are
/// limited; as `every permission` if nothing else is.
impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            namespace,
            group,
            resource,
            subresource,
            name,
            verb,
        } = self;
        if [group, resource, verb].iter().all(|part| *part == ALL) {
            f.write_str("every permission")?;
        } else {
            write!(f, "{verb} {resource}")?;
        }
        if !group.is_empty() && group != ALL {
            write!(f, ".{group}")?;
        }
        if !subresource.is_empty() {
            write!(f, "/{subresource}")?;
        }
        if let Some(name) = name {
            write!(f, " `{name}`")?;
        }
        match namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => f.write_str(" in all namespaces"),
        }
    }
}
