//! The objects that point the API server at the webhooks, as they should be: pure.

use std::collections::{BTreeMap, BTreeSet};

use orkestra_cluster::requests::{Cluster, ClusterError, Scope, Served};
use orkestra_core::{
    admission::{self, Enforcement, PolicyOptions},
    plan::ObjectKey,
    value::Node,
};
use serde_json::{Value, json};

use super::{GatewayOptions, Reach, catalogue::Catalogue, webhooks};

/// The label of every object that belongs to an installation's gateway; its value is the installation's name.
pub(super) const LABEL: &str = "orkestra.orkspace.io/gateway";
/// Versions of `MutatingAdmissionPolicies`, the preferred one first.
const OPTIONAL_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// An object to apply.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Desired {
    pub(super) served: Served,
    pub(super) name: String,
    pub(super) body: Node,
    /// True if it points at the webhooks.
    pub(super) calls: bool,
}

/// The kinds of the objects that every API server has.
pub(super) fn kinds() -> [Served; 4] {
    let of = |kind, plural| registration("v1", kind, plural);
    [
        of(
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
        ),
        of(
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
        ),
        of("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        of(
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
        ),
    ]
}

/// The kinds that only some API servers have, in that version.
pub(super) fn optional_kinds(version: &str) -> [Served; 2] {
    let of = |kind, plural| registration(version, kind, plural);
    [
        of("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
        of(
            "MutatingAdmissionPolicyBinding",
            "mutatingadmissionpolicybindings",
        ),
    ]
}

/// Returns the version in which the API server has [`optional_kinds`]; none if it does not have them, or if they may not be listed.
///
/// # Errors
/// The API server does not answer.
pub(super) async fn optional_version(
    cluster: &Cluster,
) -> Result<Option<&'static str>, ClusterError> {
    for version in OPTIONAL_VERSIONS {
        let [policy, _] = optional_kinds(version);
        match cluster.list_page(&policy, &Scope::default(), 1, None).await {
            Ok(_) => return Ok(Some(version)),
            Err(ClusterError::NotServed(_) | ClusterError::NotFound(_)) => {}
            Err(ClusterError::Forbidden { .. }) => {
                tracing::info!(
                    "missing permission to list MutatingAdmissionPolicies: only the webhook changes objects"
                );
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn registration(version: &str, kind: &str, plural: &str) -> Served {
    Served::cluster_scoped("admissionregistration.k8s.io", version, kind, plural)
}

/// Returns the hosts that the certificate must name.
pub(super) fn hosts(options: &GatewayOptions, catalogue: &Catalogue) -> Vec<String> {
    let mut hosts = BTreeSet::new();
    let host = |url: &str| {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        match authority.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default().to_owned(),
            None => authority.split(':').next().unwrap_or_default().to_owned(),
        }
    };
    let mut services = BTreeSet::new();
    match &options.reach {
        Reach::Url(url) => drop(hosts.insert(host(url))),
        Reach::Service { name } => drop(services.insert(name.clone())),
    }
    for (_, plan) in &catalogue.katalogs {
        let security = &plan.security;
        hosts.extend(security.gateway_endpoint.as_deref().map(host));
        let named = [&security.service_name, &security.webhooks_service_name];
        services.extend(named.into_iter().flatten().map(ToString::to_string));
    }
    for service in services {
        let short = format!("{service}.{}.svc", options.namespace);
        hosts.insert(format!("{short}.cluster.local"));
        hosts.insert(short);
    }
    hosts.into_iter().filter(|host| !host.is_empty()).collect()
}

/// Returns all objects that should exist; `optional` is the version of [`optional_kinds`], if there are any.
pub(super) fn desired(
    options: &GatewayOptions,
    catalogue: &Catalogue,
    authorities: &str,
    optional: Option<&str>,
) -> Vec<Desired> {
    objects(options, catalogue, (authorities, optional), false)
}

/// Returns the objects that remain when the gateway stops: `cleanupOnShutdown` removes the others. If it removes the webhooks of
/// any Katalog, it removes that of Katalogs, too.
pub(super) fn remaining(
    options: &GatewayOptions,
    catalogue: &Catalogue,
    authorities: &str,
    optional: Option<&str>,
) -> Vec<Desired> {
    objects(options, catalogue, (authorities, optional), true)
}

fn objects(
    options: &GatewayOptions,
    catalogue: &Catalogue,
    (authorities, optional): (&str, Option<&str>),
    stops: bool,
) -> Vec<Desired> {
    let [validating, mutating, _, _] = kinds();
    let plans = || catalogue.katalogs.iter().map(|(_, plan)| plan);
    let mut validations = if stops && plans().any(|plan| plan.security.cleanup) {
        Vec::new()
    } else {
        webhooks::own_kinds(options, authorities)
    };
    let mut mutations = Vec::new();
    for plan in plans().filter(|plan| !(stops && plan.security.cleanup)) {
        let rows = admission::explain(plan);
        for operator in plan.operators.iter().filter(|one| catalogue.holds(one)) {
            let needs = |blocks: &[&str]| {
                operator.admission.enabled == Some(true)
                    && rows.iter().any(|row| {
                        row.operator == operator.name
                            && row.place == Enforcement::Webhook
                            && blocks.contains(&row.block)
                    })
            };
            if operator.admission.validation && needs(&["validation"]) {
                validations.extend(webhooks::validation(options, plan, operator, authorities));
            }
            if operator.admission.mutation && needs(&["mutation", "normalize"]) {
                mutations.extend(webhooks::mutation(options, plan, operator, authorities));
            }
        }
        validations.extend(webhooks::overridden(options, plan, authorities));
    }
    let mut all = Vec::new();
    for (served, webhooks) in [(&validating, validations), (&mutating, mutations)] {
        if !webhooks.is_empty() {
            all.push(object(served, options, &json!({ "webhooks": webhooks })));
        }
    }
    all.extend(policies(options, catalogue, optional, stops));
    all
}

/// Returns the policies with their bindings, sorted by kind and name.
fn policies(
    options: &GatewayOptions,
    catalogue: &Catalogue,
    optional: Option<&str>,
    stops: bool,
) -> Vec<Desired> {
    let mut served = kinds().to_vec();
    served.extend(optional.into_iter().flat_map(optional_kinds));
    let exempt = PolicyOptions {
        users: vec![options.user.clone()],
        namespace: Some(options.namespace.clone()),
    };
    let mut policies = BTreeMap::new();
    for (_, plan) in &catalogue.katalogs {
        let mut nodes = Vec::new();
        if !(stops && plan.security.cleanup) {
            nodes.extend(admission::policies(plan, &exempt));
            if let Some(version) = optional {
                nodes.extend(admission::mutating_policies(plan, &exempt, version));
            }
        }
        nodes.extend(
            admission::protection(plan, &exempt)
                .into_iter()
                .filter(|node| {
                    let deletion = plan.security.deletion.is_some_and(|one| one.cleanup);
                    let namespaces = plan
                        .security
                        .namespaces
                        .as_ref()
                        .is_some_and(|one| one.cleanup);
                    let goes = if is_of_namespaces(node) {
                        namespaces
                    } else {
                        deletion
                    };
                    !(stops && goes)
                }),
        );
        for node in nodes {
            let Some(served) = served.iter().find(|one| is_kind(&node, one)) else {
                continue;
            };
            if let Some(desired) = labelled(served, options, &node) {
                policies.insert((served.kind.clone(), desired.name.clone()), desired);
            }
        }
    }
    policies.into_values().collect()
}

/// True for the policies, and their bindings, that protect namespaces.
fn is_of_namespaces(node: &Node) -> bool {
    node.meta_text("name")
        .is_some_and(|name| name.starts_with("namespace-protection."))
}

fn is_kind(node: &Node, served: &Served) -> bool {
    node.get("kind").and_then(Node::as_str) == Some(&*served.kind)
}

fn labelled(served: &Served, options: &GatewayOptions, node: &Node) -> Option<Desired> {
    let mut body = node.to_json();
    let name = body["metadata"]["name"].as_str()?.to_owned();
    body["metadata"]["labels"][LABEL] = options.name.clone().into();
    Some(Desired {
        served: served.clone(),
        name,
        body: Node::from(&body),
        calls: false,
    })
}

fn object(served: &Served, options: &GatewayOptions, fields: &Value) -> Desired {
    let mut body = json!({
        "apiVersion": served.api_version(), "kind": &*served.kind,
        "metadata": { "name": options.name, "labels": { LABEL: options.name } },
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        body[field] = value.clone();
    }
    Desired {
        served: served.clone(),
        name: options.name.clone(),
        body: Node::from(&body),
        calls: true,
    }
}

pub(super) fn key(name: &str) -> ObjectKey {
    ObjectKey {
        namespace: None,
        name: name.into(),
    }
}
