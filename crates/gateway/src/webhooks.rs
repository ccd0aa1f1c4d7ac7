//! The webhooks of configurations, as they should be: pure.
//!
//! Timeouts, selectors and failure policies follow Kubernetes, "Admission Webhook Good Practices".

use base64::{Engine as _, engine::general_purpose::STANDARD};
use orkestra_engine::admission::{self, Matched};
use orkestra_language::api::{FailurePolicy, Operation, names};
use orkestra_plan::{OperatorPlan, Plan};
use serde_json::{Value, json};

use super::{GatewayOptions, Reach};
use orkestra_controller::Namespaces;

/// How long the API server waits for a review, in seconds.
const TIMEOUT: u32 = 3;
/// The label that every namespace has, with its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The webhook of Katalogs, Komposers and Motifs. Writes that only touch status or other metadata than an approval do not call it.
pub(crate) fn own_kinds(options: &GatewayOptions, authorities: &str) -> Vec<Value> {
    // By default all namespaces, with Orkestra's own: an object there makes operators do as much as one elsewhere.
    let selector = match &options.katalogs {
        Namespaces::All => None,
        Namespaces::Some(namespaces) => Some(json!({ "matchExpressions": [{
            "key": NAMESPACE_NAME, "operator": "In", "values": namespaces,
        }] })),
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
    let mut webhook = json!({
        "name": "katalogs.orkestra.orkspace.io",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT,
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "rules": [{
            "apiGroups": [names::GROUP], "apiVersions": ["v1"],
            "resources": ["katalogs", "komposers", "motifs"],
            "operations": ["CREATE", "UPDATE"], "scope": "Namespaced",
        }],
        "matchConditions": [{ "name": "declaration-changed", "expression": changed }],
        "clientConfig": client_config(options, None, None, "/katalogs", authorities),
    });
    if let Some(selector) = selector {
        webhook["namespaceSelector"] = selector;
    }
    vec![webhook]
}

/// The name of an operator's webhook: a domain name, and another one for each version.
fn name(operator: &OperatorPlan, suffix: &str) -> Option<String> {
    let resource = &operator.resource;
    let plural = resource.plural.as_deref()?;
    // The core group has no name.
    let parts = [&*resource.version, plural, &*resource.group, suffix];
    let named = parts.into_iter().filter(|part| !part.is_empty());
    Some(named.collect::<Vec<_>>().join("."))
}

/// One webhook of an operator.
struct OperatorWebhook<'a> {
    /// What distinguishes it from the others of the operator.
    suffix: &'a str,
    path: &'a str,
    failure_policy: FailurePolicy,
    side_effects: &'a str,
    operations: &'a [Operation],
    /// The subresource that is written; none for the object itself.
    subresource: Option<&'a str>,
}

impl OperatorWebhook<'_> {
    fn of(
        &self,
        options: &GatewayOptions,
        (plan, operator): (&Plan, &OperatorPlan),
        authorities: &str,
    ) -> Option<Value> {
        let resource = &operator.resource;
        let security = &plan.security;
        let service = security.webhooks_service_name.as_deref();
        let service = service.or(security.service_name.as_deref());
        let endpoint = security.gateway_endpoint.as_deref();
        let operations: Vec<&str> = self.operations.iter().map(|one| one.as_str()).collect();
        let plural = resource.plural.as_deref()?;
        let (plural, conditions) = if let Some(subresource) = self.subresource {
            // A subresource has neither labels nor the fields of the object: the review looks at the object itself.
            (format!("{plural}/{subresource}"), Vec::new())
        } else {
            let users = [options.user.clone()];
            let asked = (self.operations, Matched::Operated);
            let conditions = admission::match_conditions(operator, &users, asked);
            (plural.to_owned(), conditions)
        };
        Some(json!({
            "name": name(operator, self.suffix)?,
            "admissionReviewVersions": ["v1"],
            "sideEffects": self.side_effects,
            "timeoutSeconds": TIMEOUT,
            "failurePolicy": admission::failure_policy(operator, self.failure_policy).as_str(),
            "matchPolicy": "Equivalent",
            "rules": [{
                "apiGroups": [&*resource.group], "apiVersions": [&*resource.version],
                "resources": [plural], "operations": operations, "scope": "*",
            }],
            "matchConditions": conditions,
            "clientConfig": client_config(options, service, endpoint, self.path, authorities),
        }))
    }
}

pub(crate) fn validation(
    options: &GatewayOptions,
    (plan, operator): (&Plan, &OperatorPlan),
    authorities: &str,
) -> Option<Value> {
    let webhook = OperatorWebhook {
        suffix: "admission.orkestra.orkspace.io",
        path: "/validate",
        failure_policy: operator.admission.failure_policy,
        side_effects: "None",
        operations: &operator.admission.operations,
        subresource: None,
    };
    webhook.of(options, (plan, operator), authorities)
}

/// The webhook for writes of the subresource by which the number of replicas changes without a write of the object.
pub(crate) fn scale(
    options: &GatewayOptions,
    (plan, operator): (&Plan, &OperatorPlan),
    authorities: &str,
) -> Option<Value> {
    if !operator.admission.operations.contains(&Operation::Update) {
        return None;
    }
    let webhook = OperatorWebhook {
        suffix: "scale.orkestra.orkspace.io",
        path: "/validate",
        failure_policy: operator.admission.failure_policy,
        side_effects: "None",
        operations: &[Operation::Update],
        subresource: Some(admission::SCALE),
    };
    webhook.of(options, (plan, operator), authorities)
}

/// A mutation that cannot be made is left to passes: it never refuses a request.
pub(crate) fn mutation(
    options: &GatewayOptions,
    (plan, operator): (&Plan, &OperatorPlan),
    authorities: &str,
) -> Option<Value> {
    let declared = operator.admission.operations.iter().copied();
    let operations: Vec<Operation> = declared.filter(|one| *one != Operation::Delete).collect();
    if operations.is_empty() {
        return None;
    }
    let webhook = OperatorWebhook {
        suffix: "mutation.orkestra.orkspace.io",
        path: "/mutate",
        failure_policy: FailurePolicy::Ignore,
        side_effects: "None",
        operations: &operations,
        subresource: None,
    };
    webhook.of(options, (plan, operator), authorities)
}

/// The webhook that records deletions of an operator's custom resources in spite of a protection.
pub(crate) fn overridden(
    options: &GatewayOptions,
    (plan, operator): (&Plan, &OperatorPlan),
    authorities: &str,
) -> Option<Value> {
    if !operator.admission.protection.resources {
        return None;
    }
    let webhook = OperatorWebhook {
        suffix: "delete-protection.orkestra.orkspace.io",
        path: "/deletion-protection",
        failure_policy: FailurePolicy::Ignore,
        side_effects: "NoneOnDryRun",
        operations: &[Operation::Delete],
        subresource: None,
    };
    let mut webhook = webhook.of(options, (plan, operator), authorities)?;
    webhook["timeoutSeconds"] = json!(1);
    let annotation = names::ANNOTATION_BREAK_GLASS;
    let expression = format!(
        "has(oldObject.metadata.annotations) && '{annotation}' in oldObject.metadata.annotations"
    );
    if let Some(conditions) = webhook["matchConditions"].as_array_mut() {
        conditions.push(json!({ "name": "overridden", "expression": expression }));
    }
    Some(webhook)
}

/// Returns the `caBundle` of authorities in PEM.
pub(crate) fn bundle(authorities: &str) -> String {
    STANDARD.encode(authorities)
}

/// How a webhook is called.
pub(crate) fn client_config(
    options: &GatewayOptions,
    service: Option<&str>,
    endpoint: Option<&str>,
    path: &str,
    authorities: &str,
) -> Value {
    let bundle = bundle(authorities);
    let url = match (&options.reach, endpoint) {
        (Reach::Url(url), _) => Some(url.as_str()),
        (Reach::Service { .. } | Reach::Unserved, endpoint) => endpoint,
    };
    if let Some(url) = url {
        let url = url.trim_end_matches('/');
        return json!({ "url": format!("{url}{path}"), "caBundle": bundle });
    }
    let default = match &options.reach {
        Reach::Service { name } => name.as_str(),
        Reach::Url(_) | Reach::Unserved => "",
    };
    json!({
        "service": {
            "namespace": options.namespace, "name": service.unwrap_or(default), "path": path, "port": 443,
        },
        "caBundle": bundle,
    })
}
