//! Collects permissions and merges them into rules.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::ObjectNamespaces;

/// One rule of a role: every verb on every resource of one group.
///
/// Source: Kubernetes API reference, `PolicyRule v1 rbac`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RbacRule {
    /// The API group; always exactly one, empty for the core group.
    pub api_groups: Vec<String>,
    /// Plurals, with subresources such as `websites/status`; sorted.
    pub resources: Vec<String>,
    /// Verbs, sorted.
    pub verbs: Vec<String>,
    /// The names of the objects, sorted; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
}

/// The rules that a Katalog needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// In all namespaces, and for cluster-scoped objects; sorted.
    pub cluster: Vec<RbacRule>,
    /// In single namespaces, if the Katalog fixes them; sorted.
    pub namespaces: BTreeMap<Box<str>, Vec<RbacRule>>,
    /// The namespaces in which custom resources decide which permissions children grant; `None` is all, and cluster-scoped
    /// objects. The author of the Katalog needs all permissions there; no role that is generated has them.
    pub underived: BTreeSet<Option<Box<str>>>,
}

/// Namespace, group, resource and object names of a permission.
type PermissionKey = (Option<Box<str>>, String, String, Vec<String>);

/// Collected permissions.
#[derive(Default)]
pub(crate) struct CollectedPermissions {
    /// Verbs by object.
    verbs: BTreeMap<PermissionKey, BTreeSet<String>>,
    /// See [`Permissions::underived`].
    underived: BTreeSet<Option<Box<str>>>,
}

impl CollectedPermissions {
    pub(crate) fn add(&mut self, group: &str, resource: impl Into<String>, verbs: &[&'static str]) {
        self.add_in(&ObjectNamespaces::All, group, resource, verbs);
    }

    pub(crate) fn add_in(
        &mut self,
        places: &ObjectNamespaces,
        group: &str,
        resource: impl Into<String>,
        verbs: &[&'static str],
    ) {
        let verbs = verbs.iter().copied();
        self.add_named(places, group, &resource.into(), &[], verbs);
    }

    /// Adds permissions on named objects only; without names, on all.
    pub(crate) fn add_named<'a>(
        &mut self,
        places: &ObjectNamespaces,
        group: &str,
        resource: &str,
        names: &[String],
        verbs: impl IntoIterator<Item = &'a str>,
    ) {
        let mut names = names.to_vec();
        names.sort();
        let verbs: Vec<String> = verbs.into_iter().map(str::to_owned).collect();
        for namespace in places.scopes() {
            let about = (
                namespace.map(Into::into),
                group.to_owned(),
                resource.to_owned(),
                names.clone(),
            );
            self.verbs.entry(about).or_default().extend(verbs.clone());
        }
    }

    /// Adds that children grant permissions there which only a custom resource determines.
    pub(crate) fn add_underived(&mut self, places: &ObjectNamespaces) {
        let scopes = places.scopes().into_iter();
        self.underived
            .extend(scopes.map(|namespace| namespace.map(Into::into)));
    }

    /// Returns rules for all namespaces and for single ones, one for each group and set of verbs, sorted. Permissions
    /// granted everywhere are not repeated.
    pub(crate) fn into_permissions(self) -> Permissions {
        type Merged = BTreeMap<(String, Vec<String>, Vec<String>), Vec<String>>;
        let everywhere = self.verbs.clone();
        let mut merged: BTreeMap<Option<Box<str>>, Merged> = BTreeMap::new();
        for ((namespace, group, resource, names), mut verbs) in self.verbs {
            let about = (None, group.clone(), resource.clone(), names.clone());
            if let Some(more) = everywhere.get(&about).filter(|_| namespace.is_some()) {
                verbs.retain(|verb| !more.contains(verb));
            }
            if verbs.is_empty() {
                continue;
            }
            let verbs = verbs.into_iter().collect();
            let rules = merged.entry(namespace).or_default();
            rules
                .entry((group, verbs, names))
                .or_default()
                .push(resource);
        }
        let mut permissions = Permissions {
            underived: self.underived,
            ..Permissions::default()
        };
        for (namespace, rules) in merged {
            let rule = |((group, verbs, resource_names), resources)| RbacRule {
                api_groups: vec![group],
                resources,
                verbs,
                resource_names,
            };
            let rules = rules.into_iter().map(rule).collect();
            match namespace {
                None => permissions.cluster = rules,
                Some(namespace) => drop(permissions.namespaces.insert(namespace, rules)),
            }
        }
        permissions
    }

    /// Returns one rule for each group and set of verbs, sorted.
    pub(crate) fn into_rules(self) -> Vec<RbacRule> {
        self.into_permissions().cluster
    }
}
