//! The manifests that grant permissions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    CLAIMS_NAMESPACE, NAMESPACE, Permissions, RbacRule, SERVICE_ACCOUNT, WEBHOOKS, claims,
    election, install, permissions, sources, webhooks,
};
use crate::{KatalogRef, Plan};
use orkestra_language::api::names;

/// Returns manifests for the runtime and for `plans`, to apply in order: Namespaces, `ServiceAccount`, the Roles for leader
/// election and for claims, then for the install role and for each Katalog a `ClusterRole`, and a `Role` for each namespace
/// that it fixes; each role with its binding to the service account. The runtime runs the Katalogs of `namespaces`; if
/// empty, all.
pub fn manifests(plans: &[&Plan], namespaces: &BTreeSet<Box<str>>) -> Vec<Value> {
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
    manifests.extend(grants(SERVICE_ACCOUNT, &install(namespaces)));
    manifests.extend(grants(WEBHOOKS, &webhooks()));
    manifests.extend(katalog_manifests(plans));
    manifests
}

/// Returns the roles of `plans` with their bindings, and nothing that an installation grants itself: two field managers that write
/// one role conflict when a new version changes it.
pub fn katalog_manifests(plans: &[&Plan]) -> Vec<Value> {
    let of = |plan: &&Plan| grants(&role_name(plan), &permissions(plan));
    plans.iter().flat_map(of).collect()
}

/// Returns the Role for the objects that the sources of a Komposer name, with its binding; nothing if they name none.
pub fn source_manifests(
    komposer: &KatalogRef,
    config_maps: &BTreeSet<String>,
    secrets: &BTreeSet<String>,
) -> Vec<Value> {
    let rules = sources(config_maps, secrets);
    if rules.is_empty() {
        return Vec::new();
    }
    let name = format!("{}:sources", reference_name(komposer));
    grant(Some(&komposer.namespace), &name, &rules).into()
}

/// Returns the roles with that name, if they have rules, and their bindings.
fn grants(name: &str, permissions: &Permissions) -> Vec<Value> {
    let mut manifests = Vec::new();
    if !permissions.cluster.is_empty() {
        manifests.extend(grant(None, name, &permissions.cluster));
    }
    for (namespace, rules) in &permissions.namespaces {
        manifests.extend(grant(Some(namespace), name, rules));
    }
    manifests
}

/// Returns cluster roles for users, without bindings and without aggregation to built-in roles: one to write Katalogs, Komposers and
/// Motifs, and one to read them. All kinds are in each role, since a Motif is a part of each Katalog that imports it.
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
                "resources": ["katalogs", "komposers", "motifs"],
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
            "Grants indirect use of all permissions of Orkestra: authors of Katalogs, Komposers and Motifs that they import decide what \
             operators do with Orkestra's permissions. Bind it to administrators only.",
        ),
        role(
            "viewer",
            &["get", "list", "watch"],
            "Permits reading Katalogs, Komposers and Motifs.",
        ),
    ]
}

/// Returns the name of the roles with a Katalog's permissions: `orkestra:<namespace>:<name>`; of a Komposer
/// `orkestra:komposer:<namespace>:<name>`.
pub fn role_name(plan: &Plan) -> String {
    reference_name(&plan.katalog)
}

fn reference_name(of: &KatalogRef) -> String {
    format!("{SERVICE_ACCOUNT}:{}", of.to_string().replace('/', ":"))
}

/// Returns a role with that name and its binding: a `Role` of `namespace`, or a `ClusterRole`.
fn grant(namespace: Option<&str>, name: &str, rules: &[RbacRule]) -> [Value; 2] {
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
