//! Children that grant wide access to a cluster, and the policy of an installation that permits or refuses them.
//!
//! The author of a Katalog can create any object that the controller may create. The permissions of the controller are the first
//! limit; the policy is a second one. It also covers what RBAC cannot distinguish: a privileged Pod from any other.

mod accounts;
mod pods;

use std::collections::BTreeSet;

pub use self::pods::HOST_PATH;
use self::pods::{CONTROLS, Permitted};
use super::{ChildPlan, OperatorPlan, Plan, PlanPlace, tree::DeclaredValue};

/// The sensitive children that an installation permits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChildPolicy {
    /// All of them.
    #[default]
    All,
    /// Those of these names.
    Only(BTreeSet<&'static str>),
}

/// A name that is not in the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of a sensitive child: expected one of {names}", names = ChildPolicy::names().collect::<Vec<_>>().join(", "))]
pub struct UnknownName(pub String);

/// A child that is not permitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of its entry.
    pub path: PlanPlace,
    /// The name under which it would be permitted.
    pub name: &'static str,
}

/// Formats `spec.crds.web.operatorBox.onCreate.roles[0]: Role`.
impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.name)
    }
}

/// Sensitive kinds, by group. Source: Kubernetes, "Role Based Access Control Good Practices", privilege escalation risks.
const KINDS: [(&str, &str); 16] = [
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    (ADMISSION, "ValidatingWebhookConfiguration"),
    (ADMISSION, "MutatingWebhookConfiguration"),
    (ADMISSION, "ValidatingAdmissionPolicy"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding"),
    (ADMISSION, "MutatingAdmissionPolicy"),
    (ADMISSION, "MutatingAdmissionPolicyBinding"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    (orkestra_language::api::names::GROUP, "Katalog"),
    (orkestra_language::api::names::GROUP, "Komposer"),
    (orkestra_language::api::names::GROUP, "Motif"),
];
const ADMISSION: &str = "admissionregistration.k8s.io";

/// The paths of pod specs in objects, by group and kind: all that the schemas of Kubernetes have, as a test checks.
pub const PODS: [(&str, &str, &[&str]); 9] = [
    ("", "Pod", &["spec"]),
    ("", "PodTemplate", &["template", "spec"]),
    ("", "ReplicationController", TEMPLATE),
    ("apps", "Deployment", TEMPLATE),
    ("apps", "StatefulSet", TEMPLATE),
    ("apps", "DaemonSet", TEMPLATE),
    ("apps", "ReplicaSet", TEMPLATE),
    ("batch", "Job", TEMPLATE),
    (
        "batch",
        "CronJob",
        &["spec", "jobTemplate", "spec", "template", "spec"],
    ),
];
const TEMPLATE: &[&str] = &["spec", "template", "spec"];

/// Secrets with a token of a service account.
pub const TOKENS: &str = "serviceAccountToken";
/// Pods under a service account that the Katalog does not declare.
pub const ACCOUNT: &str = "serviceAccountName";
/// Namespaces with weakened Pod Security.
pub const POD_SECURITY: &str = "podSecurity";
/// A projected token of a service account, below the spec of a pod.
const TOKEN_VOLUMES: &[&str] = &[
    "volumes",
    "*",
    "projected",
    "sources",
    "*",
    "serviceAccountToken",
];
/// Types of Secrets that the API server turns into credentials. Source: Kubernetes, "Secrets", types of Secret.
const TOKEN_SECRETS: &[&str] = &[
    "kubernetes.io/service-account-token",
    "bootstrap.kubernetes.io/token",
];
/// Labels of namespaces that decide which pods may run there, and the values that permit no more than a namespace without them.
/// Source: Kubernetes, "Enforce Pod Security Standards with Namespace Labels".
const POD_SECURITY_LABELS: [(&str, Permitted); 2] = [
    (
        "pod-security.kubernetes.io/enforce",
        Permitted::Only(&["restricted"]),
    ),
    (
        "pod-security.kubernetes.io/enforce-version",
        Permitted::Only(&["latest"]),
    ),
];

impl ChildPolicy {
    /// Returns the names that a policy may permit.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let kinds = KINDS.iter().map(|(_, kind)| *kind);
        let mut fields: Vec<&str> = CONTROLS.iter().map(|control| control.name).collect();
        fields.dedup();
        let others = [TOKENS, ACCOUNT, POD_SECURITY];
        kinds.chain(fields).chain(others)
    }

    /// Parses `all`, `none`, or names with commas between them.
    ///
    /// # Errors
    /// A name is unknown.
    pub fn parse(text: &str) -> Result<Self, UnknownName> {
        match text.trim() {
            "all" => return Ok(Self::All),
            "none" => return Ok(Self::Only(BTreeSet::new())),
            _ => {}
        }
        let known = |name: &str| {
            let name = name.trim();
            let found = Self::names().find(|known| known.eq_ignore_ascii_case(name));
            found.ok_or_else(|| UnknownName(name.to_owned()))
        };
        text.split(',')
            .map(known)
            .collect::<Result<_, _>>()
            .map(Self::Only)
    }

    /// Returns the children of a plan that are not permitted, in the order of their declaration.
    pub fn violations(&self, plan: &Plan) -> Vec<Violation> {
        let Self::Only(permitted) = self else {
            return Vec::new();
        };
        let mut violations = Vec::new();
        for operator in &plan.operators {
            for child in children(operator) {
                for name in sensitive(operator, child) {
                    if !permitted.contains(name) {
                        violations.push(Violation {
                            path: child.path.clone(),
                            name,
                        });
                    }
                }
            }
        }
        violations
    }
}

/// Returns all children of an operator, with those of `onDelete`.
fn children(operator: &OperatorPlan) -> impl Iterator<Item = &ChildPlan> {
    let steps = operator
        .on_delete
        .iter()
        .flat_map(|on_delete| &on_delete.steps);
    operator
        .children
        .iter()
        .chain(steps.flat_map(|step| &step.made))
}

/// Returns the names of everything sensitive in a child.
fn sensitive(operator: &OperatorPlan, child: &ChildPlan) -> BTreeSet<&'static str> {
    let kind = child.kind.group_kind();
    let is_kind = |group: &str, name: &str| *kind.group == *group && *kind.kind == *name;
    let named = KINDS.iter().filter(|(group, name)| is_kind(group, name));
    let mut found: BTreeSet<&'static str> = named.map(|(_, name)| *name).collect();
    let pods = PODS.iter().filter(|(group, name, _)| is_kind(group, name));
    for (_, _, spec) in pods {
        let template = spec.split_last().map_or(*spec, |(_, above)| above);
        for control in CONTROLS {
            let is_permitted = |value: DeclaredValue<'_>| control.permitted.has(value);
            let has = |field: &&[&str]| {
                let above = if control.in_template { template } else { spec };
                let path: Vec<&str> = above.iter().chain(*field).copied().collect();
                child.body.may_have_other(&path, &is_permitted)
            };
            if control.fields.iter().any(has) {
                found.insert(control.name);
            }
        }
        if child.body.may_have(&[spec, TOKEN_VOLUMES].concat()) {
            found.insert(TOKENS);
        }
        if accounts::is_of_another(operator, child, spec) {
            found.insert(ACCOUNT);
        }
    }
    let has = |path: &[&str], permitted: Permitted| {
        let is_permitted = |value: DeclaredValue<'_>| permitted.has(value);
        child.body.may_have_other(path, &is_permitted)
    };
    let on_node = [["spec", "hostPath"], ["spec", "local"]];
    if is_kind("", "PersistentVolume") && on_node.iter().any(|path| child.body.may_have(path)) {
        found.insert(HOST_PATH);
    }
    if is_kind("", "Secret") && has(&["type"], Permitted::AllBut(TOKEN_SECRETS)) {
        found.insert(TOKENS);
    }
    let labels = POD_SECURITY_LABELS.iter();
    let mut lowered =
        labels.map(|(label, permitted)| has(&["metadata", "labels", label], *permitted));
    if is_kind("", "Namespace") && lowered.any(|is_lowered| is_lowered) {
        found.insert(POD_SECURITY);
    }
    found
}
