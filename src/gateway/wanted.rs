//! The objects that point the API server at the webhooks, as they should be: pure.
//!
//! Timeouts, selectors and failure policies follow Kubernetes, "Admission Webhook Good Practices".

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use orkestra_cluster::wire::Served;
use orkestra_core::{
    admission::{self, PolicyOptions, Where},
    api::{FailurePolicy, Operation, names},
    plan::{OperatorPlan, Plan},
    value::Node,
};
use serde_json::{Value, json};

use super::{Options, Reach, catalogue::Catalogue};
use crate::meta::Namespaces;

/// The label of every object that belongs to an installation's gateway; its value is the installation's name.
pub(super) const LABEL: &str = "orkestra.orkspace.io/gateway";
/// How long the API server waits for a review, in seconds.
const TIMEOUT: u32 = 3;
/// The label that every namespace has, with its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// The namespace of Kubernetes' own components.
const KUBE_SYSTEM: &str = "kube-system";

/// An object to apply.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) served: Served,
    pub(super) name: String,
    pub(super) body: Node,
    /// True if it points at the webhooks.
    pub(super) calls: bool,
}

/// The kinds of the objects.
pub(super) fn kinds() -> [Served; 4] {
    [
        registration(
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
        ),
        registration(
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
        ),
        registration("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        registration(
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
        ),
    ]
}

fn registration(kind: &str, plural: &str) -> Served {
    Served {
        group: "admissionregistration.k8s.io".into(),
        version: "v1".into(),
        kind: kind.into(),
        plural: plural.into(),
        namespaced: false,
    }
}

/// How a webhook is called.
pub(super) fn client_config(
    options: &Options,
    service: Option<&str>,
    endpoint: Option<&str>,
    path: &str,
    authorities: &str,
) -> Value {
    let bundle = STANDARD.encode(authorities);
    let url = match (&options.reach, endpoint) {
        (Reach::Url(url), _) => Some(url.as_str()),
        (Reach::Service { .. }, endpoint) => endpoint,
    };
    if let Some(url) = url {
        let url = url.trim_end_matches('/');
        return json!({ "url": format!("{url}{path}"), "caBundle": bundle });
    }
    let default = match &options.reach {
        Reach::Service { name } => name.as_str(),
        Reach::Url(_) => "",
    };
    json!({
        "service": {
            "namespace": options.namespace, "name": service.unwrap_or(default), "path": path, "port": 443,
        },
        "caBundle": bundle,
    })
}

/// Returns the hosts that the certificate must name.
pub(super) fn hosts(options: &Options, catalogue: &Catalogue) -> Vec<String> {
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

/// Returns all objects that should exist.
pub(super) fn wanted(options: &Options, catalogue: &Catalogue, authorities: &str) -> Vec<Wanted> {
    objects(options, catalogue, authorities, false)
}

/// Returns the objects that remain when the gateway stops: `cleanupOnShutdown` removes the others. If it removes the webhooks of
/// any Katalog, it removes that of Katalogs, too.
pub(super) fn remaining(
    options: &Options,
    catalogue: &Catalogue,
    authorities: &str,
) -> Vec<Wanted> {
    objects(options, catalogue, authorities, true)
}

fn objects(
    options: &Options,
    catalogue: &Catalogue,
    authorities: &str,
    stops: bool,
) -> Vec<Wanted> {
    let [validating, mutating, _, _] = kinds();
    let plans = || catalogue.katalogs.iter().map(|(_, plan)| plan);
    let mut webhooks = if stops && plans().any(|plan| plan.security.cleanup) {
        Vec::new()
    } else {
        own_kinds(options, authorities)
    };
    let mut mutations = Vec::new();
    for plan in plans().filter(|plan| !(stops && plan.security.cleanup)) {
        let rows = admission::explain(plan);
        for operator in plan.operators.iter().filter(|one| catalogue.holds(one)) {
            let needs = |blocks: &[&str]| {
                operator.admission.enabled == Some(true)
                    && rows.iter().any(|row| {
                        row.operator == operator.name
                            && row.place == Where::Webhook
                            && blocks.contains(&row.block)
                    })
            };
            if operator.admission.validation && needs(&["validation"]) {
                webhooks.extend(validation(options, plan, operator, authorities));
            }
            if operator.admission.mutation && needs(&["mutation", "normalize"]) {
                mutations.extend(mutation(options, plan, operator, authorities));
            }
        }
        webhooks.extend(overridden(options, plan, authorities));
    }
    let mut all = Vec::new();
    for (served, webhooks) in [(&validating, webhooks), (&mutating, mutations)] {
        if !webhooks.is_empty() {
            all.push(object(served, options, &json!({ "webhooks": webhooks })));
        }
    }
    all.extend(policies(options, catalogue, stops));
    all
}

/// Returns the policies with their bindings, sorted by kind and name.
fn policies(options: &Options, catalogue: &Catalogue, stops: bool) -> Vec<Wanted> {
    let [_, _, policy, binding] = kinds();
    let exempt = PolicyOptions {
        users: vec![options.user.clone()],
        namespace: Some(options.namespace.clone()),
    };
    let mut policies = BTreeMap::new();
    for (_, plan) in &catalogue.katalogs {
        let mut nodes = Vec::new();
        if !(stops && plan.security.cleanup) {
            nodes.extend(admission::policies(plan, &exempt));
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
            let served = if is_kind(&node, &binding) {
                &binding
            } else {
                &policy
            };
            if let Some(wanted) = labelled(served, options, &node) {
                policies.insert((served.kind.clone(), wanted.name.clone()), wanted);
            }
        }
    }
    policies.into_values().collect()
}

/// True for the policies, and their bindings, that protect namespaces.
fn is_of_namespaces(node: &Node) -> bool {
    let name = node
        .get("metadata")
        .and_then(|metadata| metadata.get("name"));
    name.and_then(Node::as_str)
        .is_some_and(|name| name.starts_with("namespace-protection."))
}

fn is_kind(node: &Node, served: &Served) -> bool {
    node.get("kind").and_then(Node::as_str) == Some(&*served.kind)
}

fn labelled(served: &Served, options: &Options, node: &Node) -> Option<Wanted> {
    let mut body = node.to_json();
    let name = body["metadata"]["name"].as_str()?.to_owned();
    body["metadata"]["labels"][LABEL] = options.name.clone().into();
    Some(Wanted {
        served: served.clone(),
        name,
        body: Node::from(&body),
        calls: false,
    })
}

fn object(served: &Served, options: &Options, fields: &Value) -> Wanted {
    let mut body = json!({
        "apiVersion": served.api_version(), "kind": &*served.kind,
        "metadata": { "name": options.name, "labels": { LABEL: options.name } },
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        body[field] = value.clone();
    }
    Wanted {
        served: served.clone(),
        name: options.name.clone(),
        body: Node::from(&body),
        calls: true,
    }
}

/// Selects namespaces other than kube-system and the gateway's own: nothing there may depend on webhooks.
fn selector(options: &Options) -> Value {
    json!({ "matchExpressions": [{
        "key": NAMESPACE_NAME, "operator": "NotIn", "values": [KUBE_SYSTEM, options.namespace],
    }] })
}

/// The webhook of Katalogs, Komposers and Motifs. Writes that only touch metadata or status do not call it.
fn own_kinds(options: &Options, authorities: &str) -> Vec<Value> {
    let selector = match &options.katalogs {
        Namespaces::All => selector(options),
        Namespaces::Some(namespaces) => json!({ "matchExpressions": [{
            "key": NAMESPACE_NAME, "operator": "In", "values": namespaces,
        }] }),
    };
    let changed = "request.operation != 'UPDATE' || object.metadata.generation != oldObject.metadata.generation";
    vec![json!({
        "name": "katalogs.orkestra.orkspace.io",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT,
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": selector,
        "rules": [{
            "apiGroups": [names::GROUP], "apiVersions": ["v1"],
            "resources": ["katalogs", "komposers", "motifs"],
            "operations": ["CREATE", "UPDATE"], "scope": "Namespaced",
        }],
        "matchConditions": [
            { "name": "declaration-changed", "expression": changed },
            { "name": "not-orkestra", "expression": not_by(&options.user) },
        ],
        "clientConfig": client_config(options, None, None, "/katalogs", authorities),
    })]
}

/// An expression that excludes a user.
fn not_by(user: &str) -> String {
    let quoted = user.replace('\\', "\\\\").replace('\'', "\\'");
    format!("request.userInfo.username != '{quoted}'")
}

/// The name of an operator's webhook: a domain name, and another one for each version.
fn name(operator: &OperatorPlan, suffix: &str) -> Option<String> {
    let resource = &operator.resource;
    let plural = resource.plural.as_deref()?;
    Some(format!(
        "{}.{plural}.{}.{suffix}",
        resource.version, resource.group
    ))
}

fn webhook(
    options: &Options,
    (plan, operator): (&Plan, &OperatorPlan),
    (suffix, path, policy): (&str, &str, FailurePolicy),
    operations: &[Operation],
    authorities: &str,
) -> Option<Value> {
    let resource = &operator.resource;
    let security = &plan.security;
    let service = security.webhooks_service_name.as_deref();
    let service = service.or(security.service_name.as_deref());
    let endpoint = security.gateway_endpoint.as_deref();
    let operations: Vec<&str> = operations.iter().map(|one| one.as_str()).collect();
    Some(json!({
        "name": name(operator, suffix)?,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT,
        "failurePolicy": policy.as_str(),
        "matchPolicy": "Equivalent",
        "namespaceSelector": selector(options),
        "rules": [{
            "apiGroups": [&*resource.group], "apiVersions": [&*resource.version],
            "resources": [resource.plural.as_deref()?], "operations": operations, "scope": "*",
        }],
        "matchConditions": [
            {
                "name": "not-deleting",
                "expression": "request.operation != 'UPDATE' || !has(object.metadata.deletionTimestamp)",
            },
            { "name": "not-orkestra", "expression": not_by(&options.user) },
        ],
        "clientConfig": client_config(options, service, endpoint, path, authorities),
    }))
}

fn validation(
    options: &Options,
    plan: &Plan,
    operator: &OperatorPlan,
    authorities: &str,
) -> Option<Value> {
    let policy = operator.admission.failure_policy;
    let how = ("admission.orkestra.orkspace.io", "/validate", policy);
    let operations = &operator.admission.operations;
    webhook(options, (plan, operator), how, operations, authorities)
}

/// A mutation that cannot be made is left to passes: it never refuses a request.
fn mutation(
    options: &Options,
    plan: &Plan,
    operator: &OperatorPlan,
    authorities: &str,
) -> Option<Value> {
    let how = (
        "mutation.orkestra.orkspace.io",
        "/mutate",
        FailurePolicy::Ignore,
    );
    let declared = operator.admission.operations.iter().copied();
    let operations: Vec<Operation> = declared.filter(|one| *one != Operation::Delete).collect();
    if operations.is_empty() {
        return None;
    }
    webhook(options, (plan, operator), how, &operations, authorities)
}

/// The webhook that records deletions in spite of a protection.
fn overridden(options: &Options, plan: &Plan, authorities: &str) -> Vec<Value> {
    let resources = plan
        .operators
        .iter()
        .filter(|one| one.admission.protection.resources);
    let rules: Vec<Value> = resources
        .filter_map(|operator| {
            let resource = &operator.resource;
            Some(json!({
                "apiGroups": [&*resource.group], "apiVersions": [&*resource.version],
                "resources": [resource.plural.as_deref()?], "operations": ["DELETE"], "scope": "*",
            }))
        })
        .collect();
    if rules.is_empty() {
        return Vec::new();
    }
    let annotation = names::ANNOTATION_BREAK_GLASS;
    let expression = format!(
        "has(oldObject.metadata.annotations) && '{annotation}' in oldObject.metadata.annotations"
    );
    let security = &plan.security;
    vec![json!({
        "name": format!("{}.{}.delete-protection.orkestra.orkspace.io", plan.katalog.name, plan.katalog.namespace),
        "admissionReviewVersions": ["v1"],
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 1,
        "failurePolicy": "Ignore",
        "namespaceSelector": selector(options),
        "rules": rules,
        "matchConditions": [{ "name": "overridden", "expression": expression }],
        "clientConfig": client_config(
            options, security.service_name.as_deref(), security.gateway_endpoint.as_deref(),
            "/deletion-protection", authorities,
        ),
    })]
}
