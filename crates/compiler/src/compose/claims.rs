//! Permission claims: the permissions that a new revision of a source needs beyond those that are approved.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use orkestra_plan::Plan;
use orkestra_plan::rbac::{self, Permissions, RbacRule};

/// A permission in its smallest form: one verb on one resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The namespace; `None` means all namespaces and cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural, with a subresource such as `ponds/status`.
    pub resource: String,
    /// The name of the only object; `None` means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The verb.
    pub verb: String,
}

/// Every group, resource or verb.
const ALL: &str = "*";

/// The permissions of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Claims(BTreeSet<Claim>);

impl Claims {
    /// Returns the permissions that the operators of a plan need whose name `is_of` the source.
    pub fn of(plan: &Plan, is_of: impl Fn(&str) -> bool) -> Self {
        let operators: Vec<_> = (plan.operators.iter())
            .filter(|operator| is_of(&operator.name))
            .cloned()
            .collect();
        let kinds: BTreeSet<_> = (operators.iter())
            .map(|operator| operator.resource.group_kind())
            .collect();
        let conversions = plan.conversions.iter();
        let definitions = plan.definitions.iter();
        let own = Plan {
            katalog: plan.katalog.clone(),
            operators,
            stopped: Vec::new(),
            deletion_policy: plan.deletion_policy,
            security: plan.security.clone(),
            conversions: conversions
                .filter(|conversion| kinds.contains(&conversion.kind))
                .cloned()
                .collect(),
            definitions: definitions
                .filter(|definition| kinds.contains(&definition.kind))
                .cloned()
                .collect(),
        };
        Self::from(&rbac::permissions(&own))
    }

    /// Returns the permissions here that `approved` does not include: none means that they are equal or fewer.
    #[must_use]
    pub fn added(&self, approved: &Self) -> Self {
        let added = self.0.iter().filter(|claim| !approved.includes(claim));
        Self(added.cloned().collect())
    }

    /// True if the permission is here, or a wider one: for all namespaces, all names, or every verb, resource or group.
    fn includes(&self, claim: &Claim) -> bool {
        let covers = |own: &str, other: &str| own == other || own == ALL;
        let limits = |own: &Option<String>, other: &Option<String>| own.is_none() || own == other;
        self.0.contains(claim)
            || self.0.iter().any(|own| {
                limits(&own.namespace, &claim.namespace)
                    && covers(&own.group, &claim.group)
                    && covers(&own.resource, &claim.resource)
                    && limits(&own.name, &claim.name)
                    && covers(&own.verb, &claim.verb)
            })
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the permissions, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &Claim> {
        self.0.iter()
    }

    /// Returns a line for each resource: `create, delete secrets in namespace shop`, sorted.
    pub fn lines(&self) -> Vec<String> {
        let mut verbs: BTreeMap<Claim, Vec<&str>> = BTreeMap::new();
        for claim in &self.0 {
            let about = Claim {
                verb: String::new(),
                ..claim.clone()
            };
            verbs.entry(about).or_default().push(&claim.verb);
        }
        let line = |(claim, verbs): (&Claim, &Vec<&str>)| {
            let everything = [&*claim.group, &*claim.resource] == [ALL; 2] && *verbs == [ALL];
            let mut line = if everything {
                "every permission".to_owned()
            } else {
                format!("{} {}", verbs.join(", "), claim.resource)
            };
            if !claim.group.is_empty() && !everything {
                line.push('.');
                line.push_str(&claim.group);
            }
            if let Some(name) = &claim.name {
                let _ = write!(line, " `{name}`");
            }
            match &claim.namespace {
                Some(namespace) => {
                    let _ = write!(line, " in namespace {namespace}");
                }
                None => line.push_str(" in all namespaces"),
            }
            line
        };
        verbs.iter().map(line).collect()
    }
}

impl fmt::Display for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("; "))
    }
}

impl From<&Permissions> for Claims {
    fn from(permissions: &Permissions) -> Self {
        let cluster = permissions.cluster.iter().map(|rule| (None, rule));
        let namespaces = permissions
            .namespaces
            .iter()
            .flat_map(|(namespace, rules)| {
                rules.iter().map(|rule| (Some(namespace.to_string()), rule))
            });
        let mut claims = BTreeSet::new();
        for (namespace, rule) in cluster.chain(namespaces) {
            claims.extend(smallest(namespace.as_deref(), rule));
        }
        // Where custom resources decide what is granted, that is everything.
        claims.extend(permissions.underived.iter().map(|namespace| Claim {
            namespace: namespace.as_deref().map(str::to_owned),
            group: ALL.to_owned(),
            resource: ALL.to_owned(),
            name: None,
            verb: ALL.to_owned(),
        }));
        Self(claims)
    }
}

/// Splits a rule.
fn smallest(namespace: Option<&str>, rule: &RbacRule) -> Vec<Claim> {
    let RbacRule {
        api_groups,
        resources,
        verbs,
        resource_names,
    } = rule;
    let names: Vec<Option<&String>> = match resource_names.as_slice() {
        [] => vec![None],
        names => names.iter().map(Some).collect(),
    };
    let mut claims = Vec::new();
    for group in api_groups {
        for resource in resources {
            for verb in verbs {
                claims.extend(names.iter().map(|name| Claim {
                    namespace: namespace.map(str::to_owned),
                    group: group.clone(),
                    resource: resource.clone(),
                    name: name.cloned(),
                    verb: verb.clone(),
                }));
            }
        }
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(group: &str, resources: &[&str], verbs: &[&str], names: &[&str]) -> RbacRule {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        RbacRule {
            api_groups: vec![group.to_owned()],
            resources: owned(resources),
            verbs: owned(verbs),
            resource_names: owned(names),
        }
    }

    fn claims(cluster: Vec<RbacRule>, shop: Vec<RbacRule>) -> Claims {
        Claims::from(&Permissions {
            cluster,
            namespaces: [("shop".into(), shop)].into(),
            ..Permissions::default()
        })
    }

    #[test]
    fn fewer_permissions_add_nothing_and_more_are_listed() {
        let small = claims(
            vec![rule("apps", &["deployments"], &["get", "list"], &[])],
            vec![],
        );
        let large = claims(
            vec![rule(
                "apps",
                &["deployments"],
                &["get", "list", "patch"],
                &[],
            )],
            vec![rule("", &["secrets"], &["create", "delete"], &["key"])],
        );
        assert!(small.added(&large).is_empty());
        assert!(large.added(&large).is_empty());
        assert_eq!(
            large.added(&small).lines(),
            [
                "patch deployments.apps in all namespaces",
                "create, delete secrets `key` in namespace shop",
            ]
        );
    }

    #[test]
    fn a_wider_permission_includes_narrower_ones() {
        let narrow = claims(vec![], vec![rule("", &["secrets"], &["get"], &["key"])]);
        for wide in [
            claims(vec![], vec![rule("", &["secrets"], &["get"], &[])]),
            claims(vec![rule("", &["secrets"], &["get"], &["key"])], vec![]),
            claims(vec![rule("*", &["*"], &["*"], &[])], vec![]),
        ] {
            assert!(narrow.added(&wide).is_empty(), "{wide}");
            assert!(!wide.added(&narrow).is_empty(), "{wide}");
        }
    }

    #[test]
    fn claims_are_stored_and_read_again() {
        let stored = claims(
            vec![rule("apps", &["deployments"], &["get"], &["web"])],
            vec![],
        );
        let text = serde_json::to_string(&stored).unwrap();
        assert_eq!(serde_json::from_str::<Claims>(&text).unwrap(), stored);
    }
}
