//! The rights that a plan needs, and the manifests that grant them.
//!
//! ```text
//!  Plan ── rules ──► ClusterRole `orkestra:<namespace>:<name>`   what one Katalog's operators do
//!                 └► Roles of that name                          the same, where the Katalog fixes the namespaces
//!          install ► ClusterRole `orkestra`                      what the runtime does without any Katalog
//!         election ► Role `orkestra-leader-election`             the Lease, in the runtime's own namespace
//!         claims  ─► Role `orkestra-claims`                      the Leases by which installations claim kinds
//! ```
//!
//! Rights are never wider than what is used: no `*`, no `escalate`, no right to create or delete Katalogs. Roles that a
//! Katalog makes are the exception: what they give must be held, `*` too, and who gives a role of somebody else needs
//! `bind` on it, and on no other.

mod granted;
mod manifests;
mod rights;

pub(super) use granted::chosen_role;
pub use manifests::{manifests, role_name, roles_for_people};
pub use rights::{Permissions, PolicyRule};

use std::collections::BTreeSet;

use rights::Rights;

use super::{
    ChildPlan, GroupKind, Mode, OperatorPlan, Places, Plan, ResourceType, Token,
    cross::CrossTarget, kinds, places::may_be_scaled, references,
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

/// The rules that the operators of `plan` need in all namespaces, beside [`install`] and those of [`permissions`] for single
/// namespaces.
pub fn rules(plan: &Plan) -> Vec<PolicyRule> {
    permissions(plan).cluster
}

/// The rules that the operators of `plan` need, beside [`install`]; sorted, one for each group and set of verbs.
///
/// A kind whose plural is not known is taken to have the plural that English suggests; `compile` warns of it. Children of which
/// it is not known whether they are namespaced are taken for cluster-scoped, which covers both.
pub fn permissions(plan: &Plan) -> Permissions {
    let mut rights = Rights::default();
    for operator in &plan.operators {
        custom_resource(&mut rights, operator);
        for call in &operator.calls {
            // As what is copied: found by a watch, and read one by one.
            if let Some(Token::Secret { .. }) = call.token {
                read_by_name(&mut rights, operator, &GroupKind::parse("Secret"));
            }
        }
        if plan.deletion_policy == DeletionPolicy::Delete && !operator.watched.built_in {
            let resource = &operator.resource;
            let places = operator.own_places();
            rights.add_in(&places, &resource.group, plural(resource), &["delete"]);
        }
        for child in &operator.children {
            add_child(&mut rights, operator, child);
        }
        for relation in operator.relations() {
            let kind = relation.objects().kind;
            if let Some((plural, namespaced)) = kinds::built_in(&kind) {
                let places = if namespaced {
                    operator.related_places(relation)
                } else {
                    Places::All
                };
                rights.add_in(&places, &kind.group, plural, &["list", "watch"]);
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
                add_kind(&mut rights, operator, &job.kind, &verbs);
            }
            for child in &step.deleted {
                let verbs = ["get", "list", "watch", "delete"];
                add_kind(&mut rights, operator, &child.kind, &verbs);
            }
        }
    }
    rights.into_permissions()
}

/// Rights on children of a kind, wherever any of them is.
fn add_kind(
    rights: &mut Rights,
    operator: &OperatorPlan,
    kind: &ResourceType,
    verbs: &[&'static str],
) {
    let places = operator.child_places(&kind.group_kind(), false);
    rights.add_in(&places, &kind.group, plural(kind), verbs);
}

/// Rights to find objects of a kind by a watch, and to read them one by one.
fn read_by_name(rights: &mut Rights, operator: &OperatorPlan, kind: &GroupKind) {
    if let Some((plural, _)) = kinds::built_in(kind) {
        let places = operator.read_places(kind);
        rights.add_in(&places, &kind.group, plural, &["get", "list", "watch"]);
    }
}

fn custom_resource(rights: &mut Rights, operator: &OperatorPlan) {
    let group = &operator.resource.group;
    let plural = plural(&operator.resource);
    let places = operator.own_places();
    let verbs = ["get", "list", "watch", "patch"];
    rights.add_in(&places, group, plural.clone(), &verbs);
    if operator.status.conditions || !operator.status.fields.is_empty() {
        rights.add_in(&places, group, format!("{plural}/status"), &["patch"]);
    }
    // Children whose owner reference blocks the owner's deletion: OwnerReferencesPermissionEnforcement asks for it.
    rights.add_in(&places, group, format!("{plural}/finalizers"), &["update"]);
}

/// What leads to passes is listed and watched, one object alone where it is named: the API server takes a field selector of
/// the name for the name.
fn observed(rights: &mut Rights, operator: &OperatorPlan) {
    for watch in &operator.observe.watches {
        let name: Vec<String> = watch.name.iter().map(ToString::to_string).collect();
        let plural = plural(&watch.kind);
        let places = Places::All;
        rights.add_named(
            &places,
            &watch.kind.group,
            &plural,
            &name,
            ["list", "watch"],
        );
    }
    if !operator.observe.events.is_empty() {
        rights.add("events.k8s.io", "events", &["list", "watch"]);
    }
}

fn add_child(rights: &mut Rights, operator: &OperatorPlan, child: &ChildPlan) {
    let verbs = ["get", "list", "watch", "create", "delete"];
    add_kind(rights, operator, &child.kind, &verbs);
    // Children made once are posted and never patched, but for the label that stands in for an owner reference where
    // one is illegal: it comes off when they are released.
    if child.mode == Mode::Reconciled
        || child.may_be_elsewhere()
        || child.adopt
        || child.lasting.is_some()
    {
        add_kind(rights, operator, &child.kind, &["patch"]);
    }
    // What is copied, and what pods roll with, is found by a watch and read one by one.
    let copied = child.copy.iter().map(|copy| copy.kind.clone());
    let used = child.rolls.then(|| references::kinds(&child.body));
    for kind in copied.chain(used.into_iter().flatten()) {
        read_by_name(rights, operator, &kind);
    }
    // Where somebody else sets `replicas`, the runtime looks for an autoscaler, and watches it to learn of its end.
    if may_be_scaled(child) {
        let places = operator.scaled_places();
        let plural = "horizontalpodautoscalers";
        rights.add_in(&places, "autoscaling", plural, &["list", "watch"]);
    }
}

fn plural(kind: &ResourceType) -> String {
    match &kind.plural {
        Some(plural) => plural.to_string(),
        None => kinds::guess_plural(&kind.kind),
    }
}

/// The rules that the runtime needs without any Katalog. Where it runs the Katalogs of `namespaces` alone, those on Katalogs are
/// needed there alone; without any, everywhere.
pub fn install(namespaces: &BTreeSet<Box<str>>) -> Permissions {
    let mut rights = Rights::default();
    let places = if namespaces.is_empty() {
        Places::All
    } else {
        Places::Only(namespaces.clone())
    };
    let group = names::GROUP;
    // Patch is the narrowest verb that puts a finalizer on.
    rights.add_in(
        &places,
        group,
        "katalogs",
        &["get", "list", "watch", "patch"],
    );
    rights.add_in(&places, group, "motifs", &["list", "watch"]);
    rights.add_in(&places, group, "katalogs/status", &["patch"]);
    rights.add_in(&places, group, "katalogs/finalizers", &["update"]);
    let verbs = ["list", "create", "delete"];
    rights.add_in(&places, "apps", "controllerrevisions", &verbs);
    rights.add(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &["list", "watch"],
    );
    rights.add("events.k8s.io", "events", &["create", "patch"]);
    // Who reads metrics and pages is authenticated and authorized by the API server.
    rights.add("authentication.k8s.io", "tokenreviews", &["create"]);
    rights.add("authorization.k8s.io", "subjectaccessreviews", &["create"]);
    rights.into_permissions()
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
