//! All permissions that an operator lacks: the API server names one at a time, as requests need them.
//!
//! ```text
//!  a request is refused ──► each rule that the plan needs, reviewed ──► one message: the missing rules and the command
//! ```

use std::{collections::BTreeMap, time::Duration};

use orkestra_cluster::requests::{Cluster, ClusterError};
use orkestra_language::reasons::KatalogReason;
use orkestra_plan::{
    OperatorPlan,
    rbac::{self, Permissions, RbacRule},
};
use tokio::time::Instant;

use crate::status::OperatorProblem;

/// The interval between two reviews while a permission is missing.
pub(crate) const AGAIN: Duration = Duration::from_secs(30);
/// The most reviews at a time: beyond that, further rules are not looked at.
const MOST: usize = 400;
/// The deadline of all reviews together.
const DEADLINE: Duration = Duration::from_secs(10);

/// The permissions that an operator lacks, and when they were reviewed.
#[derive(Debug, Default)]
pub(crate) struct MissingPermissions {
    /// The plan that was reviewed, and when.
    reviewed: Option<(Box<str>, Instant)>,
    /// The missing rules and the command that grants them; none if nothing is known to be missing.
    message: Option<String>,
}

/// A kind or a subresource, in one namespace or in all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    namespace: Option<Box<str>>,
    resource: String,
    name: Option<String>,
}

impl MissingPermissions {
    /// Returns when the rules are to be reviewed again; none if that is due now.
    pub(crate) fn next(&self, plan: &OperatorPlan) -> Option<Instant> {
        let (hash, at) = self.reviewed.as_ref()?;
        let next = *at + AGAIN;
        (**hash == *plan.hash && next > Instant::now()).then_some(next)
    }

    /// Drops what is known: nothing is refused any more.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Notes the result of a review.
    pub(crate) fn note(&mut self, plan: &OperatorPlan, message: Option<String>) {
        self.reviewed = Some((plan.hash.as_str().into(), Instant::now()));
        self.message = message;
    }

    /// Keeps one of the problems of requests that lack a permission, and adds all missing rules to it.
    pub(crate) fn complete(&self, problems: &mut Vec<OperatorProblem>) {
        let Some(message) = &self.message else { return };
        let is_forbidden = |one: &OperatorProblem| one.reason == KatalogReason::Forbidden;
        let Some(first) = problems.iter().position(is_forbidden) else {
            return;
        };
        let refused = &mut problems[first].message;
        *refused = format!("{refused}; {message}");
        let mut at = 0;
        problems.retain(|one| {
            at += 1;
            at - 1 <= first || !is_forbidden(one)
        });
    }
}

/// Reviews each rule that `plan` needs; returns the missing ones with `remedy`, or none if there are none. A review that fails
/// proves nothing.
pub(crate) async fn review(cluster: &Cluster, plan: &OperatorPlan, remedy: &str) -> Option<String> {
    let needed = rbac::of_operator(plan);
    let mut missing = BTreeMap::new();
    // What is found within the deadline is reported.
    let _ = tokio::time::timeout(DEADLINE, look(cluster, &needed, &mut missing)).await;
    describe(&missing).map(|rules| format!("missing permissions: {rules}. {remedy}"))
}

/// Adds the verbs that are not permitted to `missing`.
async fn look(
    cluster: &Cluster,
    needed: &Permissions,
    missing: &mut BTreeMap<Place, Vec<String>>,
) -> Result<(), ClusterError> {
    for (namespace, group, resource, name, verb) in requests(needed).take(MOST) {
        let kind = (group, resource);
        if !cluster.may_on(verb, kind, namespace, name).await? {
            let resource = match group {
                "" => resource.to_owned(),
                group => format!("{resource}.{group}"),
            };
            let place = Place {
                namespace: namespace.map(Into::into),
                resource,
                name: name.map(str::to_owned),
            };
            missing.entry(place).or_default().push(verb.to_owned());
        }
    }
    Ok(())
}

/// Namespace, group, resource, name and verb.
type ReviewedRequest<'a> = (Option<&'a str>, &'a str, &'a str, Option<&'a str>, &'a str);

/// Returns each request that the rules permit.
fn requests(needed: &Permissions) -> impl Iterator<Item = ReviewedRequest<'_>> {
    let all = needed.cluster.iter().map(|rule| (None, rule));
    let single = needed.namespaces.iter();
    let single = single
        .flat_map(|(namespace, rules)| rules.iter().map(move |rule| (Some(&**namespace), rule)));
    all.chain(single)
        .flat_map(|(namespace, rule)| of_rule(namespace, rule))
}

fn of_rule<'a>(
    namespace: Option<&'a str>,
    rule: &'a RbacRule,
) -> impl Iterator<Item = ReviewedRequest<'a>> {
    let mut names: Vec<Option<&str>> = rule.resource_names.iter().map(|one| Some(&**one)).collect();
    if names.is_empty() {
        names.push(None);
    }
    let mut all = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for name in &names {
                let verbs = rule.verbs.iter();
                all.extend(verbs.map(|verb| (namespace, &**group, &**resource, *name, &**verb)));
            }
        }
    }
    all.into_iter()
}

/// Describes rules: `list, watch configmaps; create deployments.apps in namespace shop`.
fn describe(missing: &BTreeMap<Place, Vec<String>>) -> Option<String> {
    let lines = missing.iter().map(|(place, verbs)| {
        let Place {
            namespace,
            resource,
            name,
        } = place;
        let name = name.as_ref().map(|name| format!(" `{name}`"));
        let namespace = namespace.as_ref();
        let namespace = namespace.map(|namespace| format!(" in namespace {namespace}"));
        format!(
            "{} {resource}{}{}",
            verbs.join(", "),
            name.unwrap_or_default(),
            namespace.unwrap_or_default()
        )
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// Returns the command that grants what `plan` needs; a process that runs files has its user's permissions.
pub(crate) fn remedy(plan: &OperatorPlan, is_of_files: bool) -> String {
    let katalog = &plan.katalog;
    if is_of_files {
        return "Grant them to your user; `ork generate rbac -k FILE` prints them".to_owned();
    }
    format!(
        "Grant them: `kubectl get {} {} --namespace {} -o yaml | ork generate rbac --only-katalogs -k - | \
         kubectl apply --server-side --force-conflicts -f -`",
        katalog.kind.plural(),
        katalog.name,
        katalog.namespace
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden(message: &str) -> OperatorProblem {
        OperatorProblem {
            reason: KatalogReason::Forbidden,
            message: message.to_owned(),
        }
    }

    #[test]
    fn one_problem_names_all_missing_rules() {
        let other = OperatorProblem {
            reason: KatalogReason::KindNotServed,
            message: "x".to_owned(),
        };
        let mut problems = vec![other.clone(), forbidden("a"), other.clone(), forbidden("b")];
        let mut missing = MissingPermissions::default();
        missing.complete(&mut problems);
        assert_eq!(problems.len(), 4);
        missing.message = Some("all".to_owned());
        missing.complete(&mut problems);
        assert_eq!(problems, [other.clone(), forbidden("a; all"), other]);
    }

    #[test]
    fn rules_are_described_by_verb_resource_and_place() {
        let rule = |group: &str, resources: &[&str], verbs: &[&str], names: &[&str]| {
            let owned = |words: &[&str]| words.iter().map(|one| (*one).to_owned()).collect();
            RbacRule {
                api_groups: vec![group.to_owned()],
                resources: owned(resources),
                verbs: owned(verbs),
                resource_names: owned(names),
            }
        };
        let needed = Permissions {
            cluster: vec![rule("", &["configmaps"], &["list", "watch"], &[])],
            namespaces: [(
                "shop".into(),
                vec![rule("apps", &["deployments"], &["create"], &["web"])],
            )]
            .into(),
            ..Permissions::default()
        };
        let all: Vec<_> = requests(&needed).collect();
        assert_eq!(
            all,
            [
                (None, "", "configmaps", None, "list"),
                (None, "", "configmaps", None, "watch"),
                (Some("shop"), "apps", "deployments", Some("web"), "create"),
            ]
        );
        let place = |namespace: Option<&str>, resource: &str, name: Option<&str>| Place {
            namespace: namespace.map(Into::into),
            resource: resource.to_owned(),
            name: name.map(str::to_owned),
        };
        let missing = BTreeMap::from([
            (
                place(None, "configmaps", None),
                vec!["list".to_owned(), "watch".to_owned()],
            ),
            (
                place(Some("shop"), "deployments.apps", Some("web")),
                vec!["create".to_owned()],
            ),
        ]);
        assert_eq!(
            describe(&missing).unwrap(),
            "list, watch configmaps; create deployments.apps `web` in namespace shop"
        );
        assert_eq!(describe(&BTreeMap::new()), None);
    }
}
