//! The permissions of the webhooks, and those for admission, protection and conversion of a Katalog.

use super::{CollectedPermissions, NAMESPACE, Permissions, RbacRule};
use crate::{ObjectNamespaces, Plan};

/// Default name of the webhook configurations, and of the Secret with their certificate.
pub const WEBHOOKS: &str = "orkestra-webhooks";
/// Default name of the Secret with the certificate of the webhooks.
pub const WEBHOOKS_SECRET: &str = "orkestra-tls";

/// Returns the rules for webhooks without any Katalog: their configurations, and in the runtime's own namespace the Secret with
/// their certificate. Lists are by label, which a rule cannot name.
pub fn webhooks() -> Permissions {
    let mut collected = CollectedPermissions::default();
    for resource in CONFIGURATIONS {
        collected.add(REGISTRATION, resource, &["list", "watch"]);
        let names = [WEBHOOKS.to_owned()];
        let verbs = ["create", "delete", "patch"];
        collected.add_named(
            &ObjectNamespaces::All,
            REGISTRATION,
            resource,
            &names,
            verbs,
        );
    }
    for resource in POLICIES.into_iter().chain(MUTATING_POLICIES) {
        collected.add(REGISTRATION, resource, &["list", "watch"]);
    }
    own_role(&mut collected);
    let own = ObjectNamespaces::Only([NAMESPACE.into()].into());
    collected.add_in(&own, "", "secrets", &["create"]);
    let names = [WEBHOOKS_SECRET.to_owned()];
    let verbs = ["get", "list", "watch", "patch"];
    collected.add_named(&own, "", "secrets", &names, verbs);
    collected.into_permissions()
}

/// Adds the permission to look up the role itself: it owns the configurations and policies, so that they are deleted with it.
fn own_role(collected: &mut CollectedPermissions) {
    let role = [WEBHOOKS.to_owned()];
    let group = "rbac.authorization.k8s.io";
    collected.add_named(
        &ObjectNamespaces::All,
        group,
        "clusterroles",
        &role,
        ["list"],
    );
}

/// Returns the rules that remain when webhooks are off: to find what the webhooks registered, and to delete their configurations.
/// Policies are kept, and conversions removed, with the permissions of the Katalogs that declare them.
pub fn withdrawal() -> Vec<RbacRule> {
    let mut collected = CollectedPermissions::default();
    for resource in CONFIGURATIONS {
        let names = [WEBHOOKS.to_owned()];
        collected.add_named(
            &ObjectNamespaces::All,
            REGISTRATION,
            resource,
            &names,
            ["delete"],
        );
    }
    let all = CONFIGURATIONS.into_iter().chain(POLICIES);
    for resource in all.chain(MUTATING_POLICIES) {
        collected.add(REGISTRATION, resource, &["list"]);
    }
    own_role(&mut collected);
    collected.into_rules()
}

/// The API group of webhook configurations and policies.
const REGISTRATION: &str = "admissionregistration.k8s.io";
/// The configurations of webhooks.
const CONFIGURATIONS: [&str; 2] = [
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
];
/// Policies and their bindings.
const POLICIES: [&str; 2] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
];
/// Those that change objects, where the API server serves them.
const MUTATING_POLICIES: [&str; 2] = [
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// The verbs to keep policies, with webhooks and without. Policies are named by a hash of what they protect.
const KEPT: [&str; 5] = ["create", "delete", "list", "patch", "watch"];

/// Adds the permissions that admission, protection and conversion of a Katalog need.
pub(crate) fn guarded(collected: &mut CollectedPermissions, plan: &Plan) {
    let security = &plan.security;
    let asks = security.admission != Some(false)
        || security.deletion.is_some()
        || security.namespaces.is_some();
    let rules = plan
        .operators
        .iter()
        .any(|one| !one.rules.validation.is_empty());
    if (asks && rules) || security.deletion.is_some() || security.namespaces.is_some() {
        for resource in POLICIES {
            collected.add(REGISTRATION, resource, &KEPT);
        }
    }
    // Whether CEL can say a rule depends on the schema, which may be unknown when the role is written.
    let completes = plan.operators.iter().any(|one| {
        let mut rules = one.rules.mutation.iter();
        one.admission.enabled != Some(false)
            && one.admission.mutation
            && one.rules.normalize.is_empty()
            && rules.any(|rule| rule.value.template.literal().is_some())
    });
    if completes {
        for resource in MUTATING_POLICIES {
            collected.add(REGISTRATION, resource, &KEPT);
        }
    }
    if security.conversion == Some(false) {
        return;
    }
    let written = plan.conversions.iter().filter(|one| one.update_crd);
    let names: Vec<String> = written.map(|one| one.definition()).collect();
    if !names.is_empty() {
        let (group, plural) = ("apiextensions.k8s.io", "customresourcedefinitions");
        collected.add_named(&ObjectNamespaces::All, group, plural, &names, ["patch"]);
    }
}
