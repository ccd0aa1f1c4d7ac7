//! The permissions that a plan needs, and the manifests that grant them.
//!
//! ```text
//!  Plan ── rules ──► ClusterRole `orkestra:<namespace>:<name>`   permissions of one Katalog's operators
//!                 └► Roles of that name                          the same, where the Katalog fixes the namespaces
//!          install ► ClusterRole `orkestra`                      permissions of the runtime without any Katalog
//!         election ► Role `orkestra-leader-election`             the Lease, in the runtime's own namespace
//!        webhooks ► ClusterRole, Role `orkestra-webhooks`       webhook configurations, and the Secret with their certificate
//!      withdrawal ► ClusterRole `orkestra-webhooks`             their removal, when webhooks are off
//!         claims  ─► Role `orkestra-claims`                      the Leases by which installations claim kinds
//! ```
//!
//! Permissions are never wider than their use: no `*`, no `escalate`, no permission to create or delete Katalogs. Roles
//! that a Katalog creates are the exception: the runtime must have their permissions, including `*`. Binding a role that the
//! Katalog does not create requires `bind` on that role only. What a custom resource decides cannot be derived: no role that is
//! generated has it, and it counts as every permission where permissions are compared ([`Permissions::underived`]).

mod admission;
mod collected;
mod granted;
mod manifests;

pub use super::watched::{CLAIMS_NAMESPACE, NAMESPACE};
pub use admission::{WEBHOOKS, WEBHOOKS_SECRET, webhooks, withdrawal};
pub use collected::{Permissions, RbacRule};
pub use granted::{chosen_role, own_role};
pub use manifests::{katalog_manifests, manifests, role_name, roles_for_people, source_manifests};

use std::collections::BTreeSet;

use collected::CollectedPermissions;

use super::{
    ChildPlan, Declaring, GroupKind, Mode, ObjectNamespaces, OperatorPlan, Plan, ResourceType,
    TokenPlan, cross::CrossTarget, kinds, pods, references,
};
use orkestra_language::api::{DeletionPolicy, names};

/// Default name of the leader election Lease.
pub const LEASE: &str = "orkestra";
/// Name of the runtime's service account and of its role.
pub const SERVICE_ACCOUNT: &str = "orkestra";

/// Returns the rules that the operators of `plan` need in all namespaces, beside [`install`] and those of [`permissions`]
/// for single namespaces.
pub fn rules(plan: &Plan) -> Vec<RbacRule> {
    permissions(plan).cluster
}

/// Returns the rules that the operators of `plan` need, beside [`install`]; sorted, one for each group and set of verbs.
///
/// A kind with unknown plural gets the English plural; `compile` warns about it. Children of unknown scope count as
/// cluster-scoped, which covers both.
pub fn permissions(plan: &Plan) -> Permissions {
    let mut collected = CollectedPermissions::default();
    admission::guarded(&mut collected, plan);
    for definition in &plan.definitions {
        let (group, plural) = ("apiextensions.k8s.io", "customresourcedefinitions");
        let names = [definition.name.to_string()];
        let verbs = ["create", "patch"];
        collected.add_named(&ObjectNamespaces::All, group, plural, &names, verbs);
        // Every stored object is checked before a definition permits less.
        let objects = definition.name.split_once('.');
        let objects = objects.map_or(&*definition.name, |(plural, _)| plural);
        collected.add(&definition.kind.group, objects, &["list"]);
    }
    for operator in &plan.operators {
        let deletes = plan.deletion_policy == DeletionPolicy::Delete && !operator.watched.built_in;
        if deletes {
            delete_instances(&mut collected, operator);
        }
        add_operator(&mut collected, operator);
    }
    collected.into_permissions()
}

/// Returns the rules that one operator needs, beside [`install`] and those for admission, and without those for the deletion of
/// its custom resources with the Katalog.
pub fn of_operator(operator: &OperatorPlan) -> Permissions {
    let mut collected = CollectedPermissions::default();
    add_operator(&mut collected, operator);
    collected.into_permissions()
}

/// Adds the permission to delete custom resources.
fn delete_instances(collected: &mut CollectedPermissions, operator: &OperatorPlan) {
    let resource = &operator.resource;
    let places = operator.own_places();
    collected.add_in(&places, &resource.group, plural(resource), &["delete"]);
}

/// Adds what one operator needs, each with its reason.
fn add_operator(collected: &mut CollectedPermissions, operator: &OperatorPlan) {
    custom_resource(collected, operator);
    if operator
        .tokens()
        .any(|token| matches!(token, TokenPlan::Secret { .. }))
    {
        // Like the source of a copy: found by a watch, and read one by one.
        read_by_name(collected, operator, &GroupKind::parse("Secret"));
    }
    if operator.cleanup.is_some() {
        delete_instances(collected, operator);
    }
    for child in &operator.children {
        add_child(collected, operator, child);
    }
    for relation in operator.relations() {
        let kind = relation.objects().kind;
        if let Some((plural, namespaced)) = kinds::built_in(&kind) {
            let places = if namespaced {
                operator.related_places(relation)
            } else {
                ObjectNamespaces::All
            };
            collected.add_in(&places, &kind.group, plural, &["list", "watch"]);
        }
    }
    // Another Katalog has the permissions for its own kinds.
    for entry in &operator.cross {
        if let CrossTarget::Own(_, kind) = &entry.target {
            collected.add(&kind.group, plural(kind), &["list", "watch"]);
        }
    }
    if !operator.targets.selectors.is_empty() {
        // The labels of namespaces that custom resources choose, found by a watch and read one by one.
        collected.add("", "namespaces", &["get", "list", "watch"]);
    }
    observed(collected, operator);
    granted::add(collected, operator);
    for step in operator
        .on_delete
        .iter()
        .flat_map(|on_delete| &on_delete.steps)
    {
        for job in &step.made {
            let verbs = ["get", "list", "watch", "create", "delete", "patch"];
            add_kind(collected, operator, &job.kind, &verbs);
        }
        for child in &step.deleted {
            let verbs = ["get", "list", "watch", "delete"];
            add_kind(collected, operator, &child.kind, &verbs);
        }
    }
}

/// Adds permissions on children of a kind, in all their namespaces.
fn add_kind(
    collected: &mut CollectedPermissions,
    operator: &OperatorPlan,
    kind: &ResourceType,
    verbs: &[&'static str],
) {
    let places = operator.child_places(&kind.group_kind(), false);
    collected.add_in(&places, &kind.group, plural(kind), verbs);
}

/// Adds permissions to find objects of a kind by a watch, and to read them one by one.
fn read_by_name(collected: &mut CollectedPermissions, operator: &OperatorPlan, kind: &GroupKind) {
    if let Some((plural, _)) = kinds::built_in(kind) {
        let places = operator.read_places(kind);
        collected.add_in(&places, &kind.group, plural, &["get", "list", "watch"]);
    }
}

fn custom_resource(collected: &mut CollectedPermissions, operator: &OperatorPlan) {
    let group = &operator.resource.group;
    let plural = plural(&operator.resource);
    let places = operator.own_places();
    let verbs = ["get", "list", "watch", "patch"];
    collected.add_in(&places, group, plural.clone(), &verbs);
    if operator.status.conditions || !operator.status.fields.is_empty() {
        collected.add_in(&places, group, format!("{plural}/status"), &["patch"]);
    }
    // Children whose owner reference blocks the owner's deletion: required by OwnerReferencesPermissionEnforcement.
    collected.add_in(&places, group, format!("{plural}/finalizers"), &["update"]);
}

/// Adds permissions to list and watch triggers of passes, limited to one object if it is named: the API server authorizes a
/// field selector for the name as that name.
fn observed(collected: &mut CollectedPermissions, operator: &OperatorPlan) {
    for watch in &operator.observe.watches {
        let name: Vec<String> = watch.name.iter().map(ToString::to_string).collect();
        let plural = plural(&watch.kind);
        let places = ObjectNamespaces::All;
        collected.add_named(
            &places,
            &watch.kind.group,
            &plural,
            &name,
            ["list", "watch"],
        );
    }
    if !operator.observe.events.is_empty() {
        collected.add("events.k8s.io", "events", &["list", "watch"]);
    }
}

fn add_child(collected: &mut CollectedPermissions, operator: &OperatorPlan, child: &ChildPlan) {
    let verbs = ["get", "list", "watch", "create", "delete"];
    add_kind(collected, operator, &child.kind, &verbs);
    // Children created once are posted and never patched, except for the label that replaces an owner reference where that
    // is not allowed: it is removed on release.
    if child.mode == Mode::Reconciled
        || child.may_be_elsewhere()
        || child.adopt
        || child.keeps_values()
    {
        add_kind(collected, operator, &child.kind, &["patch"]);
    }
    // Sources of copies, and configuration that pods roll with, are found by a watch and read one by one.
    let copied = child.copy.iter().map(|copy| copy.kind.clone());
    let used = child.rolls.then(|| references::kinds(&child.body));
    for kind in copied.chain(used.into_iter().flatten()) {
        read_by_name(collected, operator, &kind);
    }
    // Why it is not ready: the Pods and Events behind it are listed, a few at a time, while it stays so.
    let of = child.kind.group_kind();
    let places = || operator.child_places(&of, false);
    if pods::has_pods(&of) {
        collected.add_in(&places(), "", "pods", &["list"]);
    }
    if pods::has_events(&of) {
        collected.add_in(&places(), "", "events", &["list"]);
    }
    // Claims of a StatefulSet grow when its templates do, which cannot change themselves.
    if child.may_grow_claims() {
        let places = operator.child_places(&child.kind.group_kind(), false);
        collected.add_in(&places, "", "persistentvolumeclaims", &["list", "patch"]);
    }
    // If another manager sets `replicas`, the runtime looks for an autoscaler, and watches it to notice its deletion.
    if child.may_be_scaled() {
        let places = operator.scaled_places();
        let plural = "horizontalpodautoscalers";
        collected.add_in(&places, "autoscaling", plural, &["list", "watch"]);
    }
}

fn plural(kind: &ResourceType) -> String {
    match &kind.plural {
        Some(plural) => plural.to_string(),
        None => kinds::guess_plural(&kind.kind),
    }
}

/// Returns the rules that the runtime needs without any Katalog. If it runs only the Katalogs of `namespaces`, the rules
/// for Katalogs are limited to those; if empty, they apply everywhere.
pub fn install(namespaces: &BTreeSet<Box<str>>) -> Permissions {
    let mut collected = CollectedPermissions::default();
    let places = if namespaces.is_empty() {
        ObjectNamespaces::All
    } else {
        ObjectNamespaces::Only(namespaces.clone())
    };
    let group = names::GROUP;
    for kind in [Declaring::Katalog, Declaring::Komposer] {
        let plural = kind.plural();
        // Patch is the narrowest verb that can add a finalizer.
        let verbs = ["get", "list", "watch", "patch"];
        collected.add_in(&places, group, plural, &verbs);
        collected.add_in(&places, group, format!("{plural}/status"), &["patch"]);
        collected.add_in(&places, group, format!("{plural}/finalizers"), &["update"]);
    }
    collected.add_in(&places, group, "motifs", &["list", "watch"]);
    let verbs = ["list", "create", "delete"];
    collected.add_in(&places, "apps", "controllerrevisions", &verbs);
    collected.add(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &["list", "watch"],
    );
    collected.add("", "events", &["create", "patch"]);
    // The API server authenticates and authorizes readers of metrics and pages.
    collected.add("authentication.k8s.io", "tokenreviews", &["create"]);
    collected.add("authorization.k8s.io", "subjectaccessreviews", &["create"]);
    collected.into_permissions()
}

/// Returns the rules for the objects that the sources of a Komposer name, in its namespace: its `ConfigMaps` are watched, and its
/// Secrets are read.
pub fn sources(config_maps: &BTreeSet<String>, secrets: &BTreeSet<String>) -> Vec<RbacRule> {
    let mut collected = CollectedPermissions::default();
    for (resource, names, verbs) in [
        ("configmaps", config_maps, &["list", "watch"][..]),
        ("secrets", secrets, &["get"][..]),
    ] {
        for name in names {
            let verbs = verbs.iter().copied();
            collected.add_named(
                &ObjectNamespaces::All,
                "",
                resource,
                std::slice::from_ref(name),
                verbs,
            );
        }
    }
    collected.into_rules()
}

/// Returns the rules for leader election, in the namespace of the Lease. Create cannot be limited to a name; the other
/// verbs are.
///
/// Source: Kubernetes RBAC, "Referring to resources": list, watch and create by name.
pub fn election() -> Vec<RbacRule> {
    let rule = |verbs: &[&str], names: &[&str]| {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        RbacRule {
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

/// Returns the rules for claims on kinds, in [`CLAIMS_NAMESPACE`]. The Leases are named after kinds, which are unknown when
/// the role is created; the namespace holds nothing else.
pub fn claims() -> Vec<RbacRule> {
    let mut collected = CollectedPermissions::default();
    collected.add(
        "coordination.k8s.io",
        "leases",
        &["get", "list", "watch", "create", "patch", "delete"],
    );
    collected.into_rules()
}
