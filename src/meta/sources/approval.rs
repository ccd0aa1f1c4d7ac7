//! Permissions that a new revision of a source adds: pure.

use std::{collections::BTreeSet, fmt};

use orkestra_core::{
    compose::SourceRecord,
    plan::{
        Plan,
        rbac::{self, PolicyRule},
    },
};

/// How many rules a message names.
const NAMED: usize = 10;
/// What stands before the namespace of a permission.
const PLACE: &str = " in namespace ";

/// A revision of a source that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unapproved {
    /// The identity of the source.
    pub(crate) source: String,
    /// The digest to approve.
    pub(crate) digest: String,
    /// The permissions that it adds, each as `create pods.core`.
    pub(crate) rules: Vec<String>,
}

impl fmt::Display for Unapproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.rules.iter().take(NAMED).cloned();
        let named = named.collect::<Vec<_>>().join(", ");
        write!(
            f,
            "the new revision of source {} needs additional permissions: {named}",
            self.source
        )?;
        if self.rules.len() > NAMED {
            write!(f, " and {} more", self.rules.len() - NAMED)?;
        }
        write!(f, "; add {} to `spec.approve` to approve it", self.digest)
    }
}

/// Returns the permissions that the operators of a source need in `new` and did not need in `old`, sorted.
pub(crate) fn added(
    source: &str,
    new: (&Plan, &[SourceRecord]),
    old: (&Plan, &[SourceRecord]),
) -> Vec<String> {
    let before = permissions(source, old);
    // What was needed everywhere covers each namespace.
    let is_new = |one: &String| {
        let everywhere = one.split(PLACE).next().unwrap_or_default();
        !before.contains(one) && !before.contains(everywhere)
    };
    permissions(source, new)
        .into_iter()
        .filter(is_new)
        .collect()
}

/// Returns the permissions that the operators of a source need, each with its place.
fn permissions(source: &str, (plan, records): (&Plan, &[SourceRecord])) -> BTreeSet<String> {
    let record = records.iter().find(|record| record.source == source);
    let is_of = |name: &String| record.is_some_and(|record| record.operators.contains(name));
    let part = Plan {
        katalog: plan.katalog.clone(),
        operators: (plan.operators.iter())
            .filter(|operator| is_of(&operator.name))
            .cloned()
            .collect(),
        stopped: Vec::new(),
        deletion_policy: plan.deletion_policy,
    };
    let permissions = rbac::permissions(&part);
    let mut all: BTreeSet<String> = permissions
        .cluster
        .iter()
        .flat_map(|rule| each(rule, ""))
        .collect();
    for (namespace, rules) in &permissions.namespaces {
        let place = format!("{PLACE}{namespace}");
        let rules = rules.iter().flat_map(|rule| each(rule, &place));
        all.extend(rules.collect::<Vec<_>>());
    }
    all
}

/// Returns the single permissions of a rule.
fn each(rule: &PolicyRule, place: &str) -> Vec<String> {
    let mut all = Vec::new();
    let any = [String::new()];
    let names: &[String] = if rule.resource_names.is_empty() {
        &any
    } else {
        &rule.resource_names
    };
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                for name in names {
                    let dot = if group.is_empty() { "" } else { "." };
                    let name = if name.is_empty() {
                        String::new()
                    } else {
                        format!(" {name}")
                    };
                    all.push(format!("{verb} {resource}{dot}{group}{name}{place}"));
                }
            }
        }
    }
    all
}
