//! The objects that point the API server at the webhooks, as they should be: pure.

use std::collections::{BTreeMap, BTreeSet};

use orkestra_cluster::requests::{Cluster, ClusterError, Scope, Served};
use orkestra_engine::admission::{self, Enforcement, PolicyOptions};
use orkestra_language::api::names;
use orkestra_object::value::Node;
use orkestra_plan::{KatalogRef, ObjectKey};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};

use super::{GatewayOptions, Reach, catalogue::Catalogue, webhooks};

/// The label of every object that belongs to an installation's gateway; its value is the installation's name.
pub(crate) const LABEL: &str = "orkestra.orkspace.io/gateway";
/// The API group of webhook configurations and policies.
const REGISTRATION: &str = "admissionregistration.k8s.io";
/// Versions of `MutatingAdmissionPolicies`, the preferred one first.
const OPTIONAL_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// An object to apply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Desired {
    pub(crate) served: Served,
    pub(crate) name: String,
    pub(crate) body: Node,
    /// True if it points at the webhooks.
    pub(crate) calls: bool,
    /// The Katalogs that declare it: of a webhook configuration by the name of the webhook, else under an empty name.
    pub(crate) of: Owners,
}

/// Katalogs by the part of an object that they declare.
pub(crate) type Owners = BTreeMap<String, BTreeSet<KatalogRef>>;

impl Desired {
    /// Returns the object's kind and name.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.served.kind, self.name)
    }

    /// Returns the Katalogs that declare any part of it.
    pub(crate) fn owners(&self) -> BTreeSet<KatalogRef> {
        self.of.values().flatten().cloned().collect()
    }
}

/// The kinds of the objects that every API server has.
pub(crate) fn kinds() -> [Served; 4] {
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

/// The kinds of webhook configurations.
pub(crate) fn configurations() -> [Served; 2] {
    let [validating, mutating, _, _] = kinds();
    [validating, mutating]
}

/// The kinds of policies for rules that refuse.
pub(crate) fn policy_kinds() -> [Served; 2] {
    let [_, _, policy, binding] = kinds();
    [policy, binding]
}

/// True if the object is a policy, or the binding of one.
pub(crate) fn is_policy(served: &Served) -> bool {
    *served.group == *REGISTRATION && !configurations().contains(served)
}

/// Returns whether the API server has [`policy_kinds`]. One that may not be listed counts as one that it has: the write reports it.
///
/// # Errors
/// The API server does not answer.
pub(crate) async fn has_policies(cluster: &Cluster) -> Result<bool, ClusterError> {
    let [policy, _] = policy_kinds();
    match cluster.list_page(&policy, &Scope::default(), 1, None).await {
        Ok(_) | Err(ClusterError::Forbidden { .. }) => Ok(true),
        Err(ClusterError::NotServed(_) | ClusterError::NotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The kinds that only some API servers have, in that version.
pub(crate) fn optional_kinds(version: &str) -> [Served; 2] {
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
pub(crate) async fn optional_version(
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
    Served::cluster_scoped(REGISTRATION, version, kind, plural)
}

/// Returns the hosts that the certificate must name.
pub(crate) fn hosts(options: &GatewayOptions, catalogue: &Catalogue) -> Vec<String> {
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
        Reach::Unserved => {}
    }
    // All Katalogs share the certificate: a host of one that a certificate cannot name is left out of it. A plan of an earlier version
    // may have such a host.
    let is_nameable = |host: &String| ServerName::try_from(host.as_str()).is_ok();
    for (_, plan) in &catalogue.katalogs {
        let security = &plan.security;
        let endpoint = security.gateway_endpoint.as_deref().map(host);
        hosts.extend(endpoint.filter(is_nameable));
        let named = [&security.service_name, &security.webhooks_service_name];
        let named = named.into_iter().flatten().map(ToString::to_string);
        services.extend(named.filter(|name| names::check_dns1035_label(name).is_ok()));
    }
    for service in services {
        let short = format!("{service}.{}.svc", options.namespace);
        hosts.insert(format!("{short}.cluster.local"));
        hosts.insert(short);
    }
    hosts.into_iter().filter(|host| !host.is_empty()).collect()
}

/// Returns all objects that should exist; `optional` is the version of [`optional_kinds`], if there are any.
pub(crate) fn desired(
    options: &GatewayOptions,
    catalogue: &Catalogue,
    authorities: &str,
    optional: Option<&str>,
) -> Vec<Desired> {
    objects(options, catalogue, (authorities, optional), false)
}

/// Returns the objects that remain when the gateway stops: `cleanupOnShutdown` removes the others. If it removes the webhooks of
/// any Katalog, it removes that of Katalogs, too.
pub(crate) fn remaining(
    options: &GatewayOptions,
    catalogue: &Catalogue,
    authorities: &str,
    optional: Option<&str>,
) -> Vec<Desired> {
    objects(options, catalogue, (authorities, optional), true)
}

// Over 60 lines: the webhooks of an operator, one after the other.
fn objects(
    options: &GatewayOptions,
    catalogue: &Catalogue,
    (authorities, optional): (&str, Option<&str>),
    stops: bool,
) -> Vec<Desired> {
    if !options.serves() {
        return policies(options, catalogue, optional, stops);
    }
    let [validating, mutating] = configurations();
    let plans = || catalogue.katalogs.iter().map(|(_, plan)| plan);
    let mut owners = Owners::new();
    let mut validations = if stops && plans().any(|plan| plan.security.cleanup) {
        Vec::new()
    } else {
        webhooks::own_kinds(options, authorities)
    };
    let mut mutations = Vec::new();
    let kept = catalogue.katalogs.iter();
    for (katalog, plan) in kept.filter(|(_, plan)| !(stops && plan.security.cleanup)) {
        let before = [validations.len(), mutations.len()];
        let rows = admission::explain(plan);
        for operator in &plan.operators {
            let by_webhook = operator.admission.enabled == Some(true);
            let needs = |blocks: &[&str]| {
                by_webhook
                    && rows.iter().any(|row| {
                        row.operator == operator.name
                            && row.place == Enforcement::Webhook
                            && blocks.contains(&row.block)
                    })
            };
            let of = (&**plan, &**operator);
            if operator.admission.validation && needs(&["validation"]) {
                validations.extend(webhooks::validation(options, of, authorities));
            }
            let is_checked = rows.iter().any(|row| {
                row.operator == operator.name
                    && row.block == "validation"
                    && matches!(row.place, Enforcement::Policy | Enforcement::Webhook)
            });
            if by_webhook && is_checked && operator.admission.replicas.is_some() {
                validations.extend(webhooks::scale(options, of, authorities));
            }
            if operator.admission.mutation && needs(&["mutation", "normalize"]) {
                mutations.extend(webhooks::mutation(options, of, authorities));
            }
            validations.extend(webhooks::overridden(options, of, authorities));
        }
        let added = validations.iter().skip(before[0]);
        let added = added.chain(mutations.iter().skip(before[1]));
        own(&mut owners, katalog, added);
    }
    let mut all = Vec::new();
    for (served, webhooks) in [(&validating, validations), (&mutating, mutations)] {
        if !webhooks.is_empty() {
            let of = owners_of(&owners, &webhooks);
            all.push(configuration(served, options, &webhooks, of));
        }
    }
    all.extend(policies(options, catalogue, optional, stops));
    all
}

/// Notes that the Katalog declares these webhooks.
fn own<'w>(owners: &mut Owners, katalog: &KatalogRef, webhooks: impl Iterator<Item = &'w Value>) {
    for name in webhooks.filter_map(|webhook| webhook["name"].as_str()) {
        let of = owners.entry(name.to_owned()).or_default();
        of.insert(katalog.clone());
    }
}

/// Returns the Katalogs that declare these webhooks, by the name of the webhook.
fn owners_of(owners: &Owners, webhooks: &[Value]) -> Owners {
    let names = webhooks
        .iter()
        .filter_map(|webhook| webhook["name"].as_str());
    let of = names.filter_map(|name| owners.get_key_value(name));
    of.map(|(name, of)| (name.clone(), of.clone())).collect()
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
    for (katalog, plan) in &catalogue.katalogs {
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
            if let Some(mut desired) = labelled(served, options, &node) {
                let key = (served.kind.clone(), desired.name.clone());
                let before = policies.get(&key).map(|before: &Desired| before.of.clone());
                desired.of = before.unwrap_or_default();
                desired
                    .of
                    .entry(String::new())
                    .or_default()
                    .insert(katalog.clone());
                policies.insert(key, desired);
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
    body["metadata"]["annotations"][names::ANNOTATION_INSTALLATION] =
        options.installation.clone().into();
    Some(Desired {
        served: served.clone(),
        name,
        body: Node::from(&body),
        calls: false,
        of: Owners::new(),
    })
}

/// Returns the webhook configuration of that kind with those webhooks.
pub(crate) fn configuration(
    served: &Served,
    options: &GatewayOptions,
    webhooks: &[Value],
    of: Owners,
) -> Desired {
    let body = json!({
        "apiVersion": served.api_version(), "kind": &*served.kind,
        "metadata": {
            "name": options.name,
            "labels": { LABEL: options.name },
            "annotations": { names::ANNOTATION_INSTALLATION: options.installation },
        },
        "webhooks": webhooks,
    });
    Desired {
        served: served.clone(),
        name: options.name.clone(),
        body: Node::from(&body),
        calls: true,
        of,
    }
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey {
        namespace: None,
        name: name.into(),
    }
}
