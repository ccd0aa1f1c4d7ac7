//! The rights that a plan needs, and the manifests that grant them.
//!
//! ```text
//!  Plan ── rules ──► ClusterRole `orkestra:<namespace>:<name>`   what one Katalog's operators do
//!          install ► ClusterRole `orkestra`                      what the runtime does without any Katalog
//!         election ► Role `orkestra-leader-election`             the Lease, in the runtime's own namespace
//!         claims  ─► Role `orkestra-claims`                      the Leases by which installations claim kinds
//! ```
//!
//! Rights are never wider than what is used: no `*`, no `escalate`, no right to create or delete Katalogs. Roles that a
//! Katalog makes are the exception: what they give must be held, `*` too, and who gives a role of somebody else needs
//! `bind` on it, and on no other.

mod granted;

pub(super) use granted::chosen_role;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    ChildPlan, Mode, OperatorPlan, Plan, ResourceType, Token, cross::CrossTarget, kinds, references,
};
use crate::api::{DeletionPolicy, names};

/// Name of the Lease of leader election, unless it is told otherwise.
pub const LEASE: &str = "orkestra";
/// Namespace that the runtime is installed in.
pub const NAMESPACE: &str = "orkestra-system";
/// Namespace of the Leases by which installations claim kinds: the same for all installations of a cluster, and for nothing else.
pub const CLAIMS_NAMESPACE: &str = "orkestra-claims";
/// Name of the runtime's service account and of its own role.
pub const SERVICE_ACCOUNT: &str = "orkestra";

/// One rule of a role: every verb on every resource of one group.
///
/// Source: Kubernetes API reference, `PolicyRule v1 rbac`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// The API group; always exactly one, empty for the core group.
    pub api_groups: Vec<String>,
    /// Plurals, with subresources such as `websites/status`; sorted.
    pub resources: Vec<String>,
    /// Verbs, sorted.
    pub verbs: Vec<String>,
    /// The objects that it is about, sorted; none is all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
}

/// Rights being gathered: verbs by group, resource and names of objects.
#[derive(Default)]
struct Rights(BTreeMap<(String, String, Vec<String>), BTreeSet<String>>);

impl Rights {
    fn add(&mut self, group: &str, resource: impl Into<String>, verbs: &[&'static str]) {
        self.add_named(group, &resource.into(), &[], verbs.iter().copied());
    }

    /// Adds rights on some objects only; without names, on all.
    fn add_named<'a>(
        &mut self,
        group: &str,
        resource: &str,
        names: &[String],
        verbs: impl IntoIterator<Item = &'a str>,
    ) {
        let mut names = names.to_vec();
        names.sort();
        self.0
            .entry((group.to_owned(), resource.to_owned(), names))
            .or_default()
            .extend(verbs.into_iter().map(str::to_owned));
    }

    /// One rule for each group and set of verbs, sorted.
    fn into_rules(self) -> Vec<PolicyRule> {
        let mut merged: BTreeMap<(String, Vec<String>, Vec<String>), Vec<String>> = BTreeMap::new();
        for ((group, resource, names), verbs) in self.0 {
            let verbs = verbs.into_iter().collect();
            merged
                .entry((group, verbs, names))
                .or_default()
                .push(resource);
        }
        let rule = |((group, verbs, resource_names), resources)| PolicyRule {
            api_groups: vec![group],
            resources,
            verbs,
            resource_names,
        };
        merged.into_iter().map(rule).collect()
    }
}

/// The rules that the operators of `plan` need, beside [`install`]; sorted, one for each group and set of verbs.
///
/// A kind whose plural is not known is taken to have the plural that English suggests; `compile` warns of it.
pub fn rules(plan: &Plan) -> Vec<PolicyRule> {
    let mut rights = Rights::default();
    for operator in &plan.operators {
        custom_resource(&mut rights, operator);
        for call in &operator.calls {
            // As what is copied: found by a watch, and read one by one.
            if let Some(Token::Secret { .. }) = call.token {
                rights.add("", "secrets", &["get", "list", "watch"]);
            }
        }
        if plan.deletion_policy == DeletionPolicy::Delete {
            let resource = &operator.resource;
            rights.add(&resource.group, plural(resource), &["delete"]);
        }
        for child in &operator.children {
            add_child(&mut rights, child);
        }
        for relation in operator.relations() {
            let kind = relation.objects().kind;
            if let Some((plural, _)) = kinds::built_in(&kind) {
                rights.add(&kind.group, plural, &["list", "watch"]);
            }
        }
        // Of another Katalog's kinds that Katalog has the rights.
        for entry in &operator.cross {
            if let CrossTarget::Own(_, kind) = &entry.target {
                rights.add(&kind.group, plural(kind), &["list", "watch"]);
            }
        }
        if !operator.targets.selectors.is_empty() {
            // The labels of namespaces that custom resources choose, found by a watch and read one by one.
            rights.add("", "namespaces", &["get", "list", "watch"]);
        }
        observed(&mut rights, operator);
        granted::add(&mut rights, operator);
        for step in operator.ending.iter().flat_map(|ending| &ending.steps) {
            for job in &step.made {
                let verbs = ["get", "list", "watch", "create", "delete", "patch"];
                rights.add(&job.kind.group, plural(&job.kind), &verbs);
            }
            for child in &step.deleted {
                let verbs = ["get", "list", "watch", "delete"];
                rights.add(&child.kind.group, plural(&child.kind), &verbs);
            }
        }
    }
    rights.into_rules()
}

fn custom_resource(rights: &mut Rights, operator: &OperatorPlan) {
    let group = &operator.resource.group;
    let plural = plural(&operator.resource);
    rights.add(group, plural.clone(), &["get", "list", "watch", "patch"]);
    if operator.status.conditions || !operator.status.fields.is_empty() {
        rights.add(group, format!("{plural}/status"), &["patch"]);
    }
    // Children whose owner reference blocks the owner's deletion: OwnerReferencesPermissionEnforcement asks for it.
    rights.add(group, format!("{plural}/finalizers"), &["update"]);
}

/// What leads to passes is listed and watched, one object alone where it is named: the API server takes a field selector of
/// the name for the name.
fn observed(rights: &mut Rights, operator: &OperatorPlan) {
    for watch in &operator.observe.watches {
        let name: Vec<String> = watch.name.iter().map(ToString::to_string).collect();
        let plural = plural(&watch.kind);
        rights.add_named(&watch.kind.group, &plural, &name, ["list", "watch"]);
    }
    if !operator.observe.events.is_empty() {
        rights.add("events.k8s.io", "events", &["list", "watch"]);
    }
}

fn add_child(rights: &mut Rights, child: &ChildPlan) {
    let group = &child.kind.group;
    rights.add(
        group,
        plural(&child.kind),
        &["get", "list", "watch", "create", "delete"],
    );
    // Children made once are posted and never patched, but for the label that stands in for an owner reference where
    // one is illegal: it comes off when they are released.
    if child.mode == Mode::Reconciled
        || child.may_be_elsewhere()
        || child.adopt
        || child.lasting.is_some()
    {
        rights.add(group, plural(&child.kind), &["patch"]);
    }
    // What is copied, and what pods roll with, is found by a watch and read one by one.
    let copied = child.copy.iter().map(|copy| copy.kind.clone());
    let used = child.rolls.then(|| references::kinds(&child.body));
    for kind in copied.chain(used.into_iter().flatten()) {
        if let Some((plural, _)) = kinds::built_in(&kind) {
            rights.add(&kind.group, plural, &["get", "list", "watch"]);
        }
    }
    // Where somebody else sets `replicas`, the runtime looks for an autoscaler, and watches it to learn of its end.
    if &**group == "apps" && child.mode == Mode::Reconciled && child.body.has(&["spec", "replicas"])
    {
        rights.add(
            "autoscaling",
            "horizontalpodautoscalers",
            &["list", "watch"],
        );
    }
}

fn plural(kind: &ResourceType) -> String {
    match &kind.plural {
        Some(plural) => plural.to_string(),
        None => kinds::guess_plural(&kind.kind),
    }
}

/// The rules that the runtime needs without any Katalog; sorted.
pub fn install() -> Vec<PolicyRule> {
    let mut rights = Rights::default();
    // Patch is the narrowest verb that puts a finalizer on.
    rights.add(names::GROUP, "katalogs", &["get", "list", "watch", "patch"]);
    rights.add(names::GROUP, "motifs", &["list", "watch"]);
    rights.add(names::GROUP, "katalogs/status", &["patch"]);
    rights.add(names::GROUP, "katalogs/finalizers", &["update"]);
    rights.add("apps", "controllerrevisions", &["list", "create", "delete"]);
    rights.add(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &["list", "watch"],
    );
    rights.add("events.k8s.io", "events", &["create", "patch"]);
    // Who reads metrics and pages is authenticated and authorized by the API server.
    rights.add("authentication.k8s.io", "tokenreviews", &["create"]);
    rights.add("authorization.k8s.io", "subjectaccessreviews", &["create"]);
    rights.into_rules()
}

/// The rules that leader election needs, in the namespace of the Lease. Making one cannot be limited to a name; the rest is.
///
/// Source: Kubernetes RBAC, "Referring to resources": list, watch and create by name.
pub fn election() -> Vec<PolicyRule> {
    let rule = |verbs: &[&str], names: &[&str]| {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        PolicyRule {
            api_groups: owned(&["coordination.k8s.io"]),
            resources: owned(&["leases"]),
            resource_names: owned(names),
            verbs: owned(verbs),
        }
    };
    vec![
        rule(&["create"], &[]),
        rule(&["get", "update", "watch"], &[LEASE]),
    ]
}

/// The rules that claims on kinds need, in [`CLAIMS_NAMESPACE`]. The Leases there are named after kinds, which are not known
/// when the role is made; the namespace holds nothing else.
pub fn claims() -> Vec<PolicyRule> {
    let mut rights = Rights::default();
    rights.add(
        "coordination.k8s.io",
        "leases",
        &["get", "list", "watch", "create", "patch", "delete"],
    );
    rights.into_rules()
}

/// Manifests for the runtime and for `plans`, to apply in order: Namespaces, `ServiceAccount`, the Roles for leader election and
/// for claims, then for the install role and for each Katalog a `ClusterRole`; each role with its binding to the service account.
pub fn manifests(plans: &[&Plan]) -> Vec<Value> {
    let mut manifests = vec![
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } }),
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": CLAIMS_NAMESPACE } }),
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": { "name": SERVICE_ACCOUNT, "namespace": NAMESPACE },
        }),
    ];
    let elects = format!("{SERVICE_ACCOUNT}-leader-election");
    manifests.extend(grant(Some(NAMESPACE), &elects, &election()));
    manifests.extend(grant(Some(CLAIMS_NAMESPACE), CLAIMS_NAMESPACE, &claims()));
    manifests.extend(grant(None, SERVICE_ACCOUNT, &install()));
    for plan in plans {
        manifests.extend(grant(None, &role_name(plan), &rules(plan)));
    }
    manifests
}

/// Cluster roles for people, which are bound to nobody and added to no role of Kubernetes' own: who writes Katalogs and Motifs,
/// and who reads them. Both kinds go together, since a Motif is a part of each Katalog that imports it.
pub fn roles_for_people() -> Vec<Value> {
    let role = |name: &str, verbs: &[&str], description: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": format!("{SERVICE_ACCOUNT}-{name}"),
                "annotations": { "kubernetes.io/description": description },
            },
            "rules": [{
                "apiGroups": [names::GROUP],
                "resources": ["katalogs", "motifs"],
                "verbs": verbs,
            }],
        })
    };
    vec![
        role(
            "author",
            &[
                "create", "delete", "get", "list", "patch", "update", "watch",
            ],
            "Grants the power of Orkestra itself: authors of Katalogs, and of Motifs that Katalogs import, decide what \
             operators do with Orkestra's permissions. Bind it to administrators only.",
        ),
        role(
            "viewer",
            &["get", "list", "watch"],
            "Permits reading Katalogs and Motifs.",
        ),
    ]
}

/// The name of the `ClusterRole` with what a Katalog needs: `orkestra:<namespace>:<name>`.
pub fn role_name(plan: &Plan) -> String {
    format!(
        "{SERVICE_ACCOUNT}:{}:{}",
        plan.katalog.namespace, plan.katalog.name
    )
}

/// A role of that name and its binding: a `Role` of `namespace`, or a `ClusterRole`.
fn grant(namespace: Option<&str>, name: &str, rules: &[PolicyRule]) -> [Value; 2] {
    const API_VERSION: &str = "rbac.authorization.k8s.io/v1";
    let mut metadata = json!({ "name": name });
    let kind = match namespace {
        Some(namespace) => {
            metadata["namespace"] = namespace.into();
            "Role"
        }
        None => "ClusterRole",
    };
    let role = json!({
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": metadata,
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": API_VERSION,
        "kind": format!("{kind}Binding"),
        "metadata": metadata,
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE }],
    });
    [role, binding]
}
