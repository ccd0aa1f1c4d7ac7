//! The webhooks of configurations, as they should be: pure.
//!
//! Timeouts, selectors and failure policies follow Kubernetes, "Admission Webhook Good Practices".

use base64::{Engine as _, engine::general_purpose::STANDARD};
use orkestra_core::{
    api::{FailurePolicy, Operation, names},
    plan::{OperatorPlan, Plan},
};
use serde_json::{Value, json};

use super::{GatewayOptions, Reach};
use crate::meta::Namespaces;

/// How long the API server waits for a review, in seconds.
const TIMEOUT: u32 = 3;
/// The label that every namespace has, with its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";
/// The namespace of Kubernetes' own components.
const KUBE_SYSTEM: &str = "kube-system";

/// Selects namespaces other than kube-system and the gateway's own: nothing there may depend on webhooks.
fn selector(options: &GatewayOptions) -> Value {
    json!({ "matchExpressions": [{
        "key": NAMESPACE_NAME, "operator": "NotIn", "values": [KUBE_SYSTEM, options.namespace],
    }] })
}

/// The webhook of Katalogs, Komposers and Motifs. Writes that only touch status or other metadata than an approval do not call it.
pub(super) fn own_kinds(options: &GatewayOptions, authorities: &str) -> Vec<Value> {
    let selector = match &options.katalogs {
        Namespaces::All => selector(options),
        Namespaces::Some(namespaces) => json!({ "matchExpressions": [{
            "key": NAMESPACE_NAME, "operator": "In", "values": namespaces,
        }] }),
    };
    // An approval by annotation does not change the generation.
    let approval = |object: &str| {
        format!(
            "(has({object}.metadata.annotations) && '{key}' in {object}.metadata.annotations ? {object}.metadata.annotations['{key}'] : '')",
            key = names::ANNOTATION_APPROVE,
        )
    };
    let changed = format!(
        "request.operation != 'UPDATE' || object.metadata.generation != oldObject.metadata.generation || {} != {}",
        approval("object"),
        approval("oldObject"),
    );
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
    options: &GatewayOptions,
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

pub(super) fn validation(
    options: &GatewayOptions,
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
pub(super) fn mutation(
    options: &GatewayOptions,
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
pub(super) fn overridden(options: &GatewayOptions, plan: &Plan, authorities: &str) -> Vec<Value> {
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

/// Returns the `caBundle` of authorities in PEM.
pub(super) fn bundle(authorities: &str) -> String {
    STANDARD.encode(authorities)
}

/// How a webhook is called.
pub(super) fn client_config(
    options: &GatewayOptions,
    service: Option<&str>,
    endpoint: Option<&str>,
    path: &str,
    authorities: &str,
) -> Value {
    let bundle = bundle(authorities);
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
