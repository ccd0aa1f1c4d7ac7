//! `ValidatingAdmissionPolicies` for protection against deletion and of namespaces.
//!
//! ```text
//!  DELETE of a custom resource or a definition ─┬─ label `orkestra.io/deletion-protection: "false"`, outside strict mode ─► passes
//!                                               ├─ annotation `orkestra.orkspace.io/break-glass` ───────────────────────► passes
//!                                               ├─ by Orkestra, or by Kubernetes' garbage collector ────────────────────► passes
//!                                               └─ else ────────────────────────────────────────────────────────────────► refused
//! ```
//!
//! The label `orkestra.io/deletion-protection: "true"` protects Orkestra's own objects. Policies are part of the API server:
//! they protect also while no replica runs. No policy matches policies, so that they can always be deleted.

use serde_json::{Value, json};

use super::policies::{
    Policy, PolicyOptions, WRITES, bound, condition, listed, not_deleted, not_of, permitted,
};
use crate::{
    api::{Operation, names},
    plan::{DeletionPlan, OperatorPlan, Plan, cel::quoted},
    value::Node,
};

/// The user by which Kubernetes deletes objects whose owners are gone: the deletion of the owner was admitted.
const GARBAGE_COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

/// Orkestra's own objects in its namespace: API group and plurals.
const OWN: [(&str, &[&str]); 3] = [
    ("apps", &["deployments"]),
    ("", &["services", "serviceaccounts", "secrets"]),
    ("networking.k8s.io", &["ingresses"]),
];

/// Returns the policies, each followed by its binding, for `security` of `plan`.
pub fn protection(plan: &Plan, options: &PolicyOptions) -> Vec<Node> {
    let mut policies = Vec::new();
    if let Some(deletion) = plan.security.deletion {
        policies.extend(definitions(plan, deletion, options));
        for operator in &plan.operators {
            policies.extend(resources(operator, deletion, options));
        }
        policies.extend(own(plan, deletion, options));
    }
    if let Some(namespaces) = &plan.security.namespaces {
        let failure_policy = namespaces.failure_policy.as_str();
        for operator in &plan.operators {
            policies.extend(namespaced(operator, failure_policy, options));
        }
    }
    policies
}

/// Protects custom resources.
fn resources(
    operator: &OperatorPlan,
    deletion: DeletionPlan,
    options: &PolicyOptions,
) -> Vec<Node> {
    let protection = operator.admission.protection;
    if !protection.resources {
        return Vec::new();
    }
    let policy = |purpose, operations, conditions, validations| Policy {
        operator,
        purpose,
        operations,
        version: "*",
        on_failure: deletion.failure_policy.as_str(),
        action: "Deny",
        conditions,
        validations,
    };
    let mut nodes = policy(
        "delete-protection",
        &DELETES,
        not_internal(options),
        vec![refuse_deletion(LabelRole::Unless)],
    )
    .nodes()
    .to_vec();
    if protection.strict {
        let mut conditions = vec![not_deleted()];
        conditions.extend(not_of(&options.users));
        let validations = vec![refuse_removal(LabelRole::Unless)];
        nodes.extend(policy("strict-mode", &UPDATES, conditions, validations).nodes());
    }
    nodes
}

/// Protects the definitions of operators.
fn definitions(plan: &Plan, deletion: DeletionPlan, options: &PolicyOptions) -> Vec<Node> {
    let protected = plan.operators.iter();
    let protected = protected.filter(|operator| operator.admission.protection.definition);
    let mut names: Vec<String> = protected
        .filter(|operator| !operator.watched.built_in)
        .filter_map(|operator| {
            let plural = operator.resource.plural.as_deref()?;
            Some(format!("{plural}.{}", operator.resource.group))
        })
        .collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Vec::new();
    }
    let names = listed(names.iter().map(String::as_str));
    let is_one = |object| condition("protected", format!("{object}.metadata.name in {names}"));
    let of = |purpose, operations: &[&str], conditions, validations| {
        let name = names::policy(purpose, &plan.katalog.to_string(), "definitions");
        let groups = [("apiextensions.k8s.io", &["customresourcedefinitions"][..])];
        bound(
            (&name, &plan.katalog.to_string()),
            (deletion.failure_policy.as_str(), "Deny"),
            &constraints(&groups, operations),
            (conditions, validations),
        )
    };
    let mut conditions = vec![is_one("oldObject")];
    conditions.extend(not_internal(options));
    let refused = vec![refuse_deletion(LabelRole::Unless)];
    let mut nodes = of("delete-protection", &DELETES, conditions, refused).to_vec();
    if deletion.strict {
        let mut conditions = vec![is_one("object"), not_deleted()];
        conditions.extend(not_of(&options.users));
        let refused = vec![refuse_removal(LabelRole::Unless)];
        nodes.extend(of("strict-mode", &UPDATES, conditions, refused));
    }
    nodes
}

/// Protects labelled objects in the namespace of Orkestra.
fn own(plan: &Plan, deletion: DeletionPlan, options: &PolicyOptions) -> Vec<Node> {
    let Some(namespace) = &options.namespace else {
        return Vec::new();
    };
    let here = condition(
        "own-namespace",
        format!("request.namespace == {}", quoted(namespace)),
    );
    let of = |purpose, operations: &[&str], conditions, validations| {
        let name = names::policy(purpose, &plan.katalog.to_string(), "orkestra");
        bound(
            (&name, &plan.katalog.to_string()),
            (deletion.failure_policy.as_str(), "Deny"),
            &constraints(&OWN, operations),
            (conditions, validations),
        )
    };
    let mut conditions = vec![here.clone()];
    conditions.extend(not_internal(options));
    let refused = vec![refuse_deletion(LabelRole::If)];
    let mut nodes = of("delete-protection", &DELETES, conditions, refused).to_vec();
    if deletion.strict {
        let mut conditions = vec![here, not_deleted()];
        conditions.extend(not_of(&options.users));
        let refused = vec![refuse_removal(LabelRole::If)];
        nodes.extend(of("strict-mode", &UPDATES, conditions, refused));
    }
    nodes
}

/// Refuses custom resources in namespaces that are not permitted.
fn namespaced(operator: &OperatorPlan, failure_policy: &str, options: &PolicyOptions) -> Vec<Node> {
    let watched = &operator.watched;
    let Some(expression) = permitted(&watched.allowed, &watched.restricted) else {
        return Vec::new();
    };
    let mut conditions = vec![not_deleted()];
    conditions.extend(not_of(&options.users));
    let kind = &operator.resource.kind;
    let text = format!("{kind} is not permitted in namespace ");
    let validation = json!({
        "expression": expression,
        "message": format!("{kind} is not permitted in this namespace"),
        "messageExpression": format!("{} + request.namespace", quoted(&text)),
        "reason": "Forbidden",
    });
    let policy = Policy {
        operator,
        purpose: "namespace-protection",
        operations: &WRITES,
        version: "*",
        on_failure: failure_policy,
        action: "Deny",
        conditions,
        validations: vec![validation],
    };
    policy.nodes().to_vec()
}

const DELETES: [&str; 1] = [Operation::Delete.as_str()];
const UPDATES: [&str; 1] = [Operation::Update.as_str()];

/// The role of the label.
#[derive(Clone, Copy)]
enum LabelRole {
    /// Objects are protected unless it is `false`.
    Unless,
    /// Objects are protected if it is `true`.
    If,
}

impl LabelRole {
    /// Returns the expression that is true if `object` is protected.
    fn protects(self, object: &str) -> String {
        let label = |value| has(object, "labels", names::LABEL_PROTECTION, value);
        match self {
            Self::Unless => format!("!({})", label("false")),
            Self::If => format!("({})", label("true")),
        }
    }
}

/// Returns the expression that is true if a label or annotation has that value.
fn has(object: &str, field: &str, key: &str, value: &str) -> String {
    let (field, key) = (format!("{object}.metadata.{field}"), quoted(key));
    format!(
        "has({field}) && {key} in {field} && {field}[{key}] == {}",
        quoted(value)
    )
}

/// Returns the expression that is true if `object` carries the break-glass annotation, with a reason.
fn breaks_glass(object: &str) -> String {
    let field = format!("{object}.metadata.annotations");
    let key = quoted(names::ANNOTATION_BREAK_GLASS);
    format!("(has({field}) && {key} in {field} && {field}[{key}] != \"\")")
}

fn not_internal(options: &PolicyOptions) -> Vec<Value> {
    let users = options.users.iter().cloned();
    let users: Vec<String> = users.chain([GARBAGE_COLLECTOR.to_owned()]).collect();
    not_of(&users).into_iter().collect()
}

fn refuse_deletion(mark: LabelRole) -> Value {
    let (protects, breaks) = (mark.protects("oldObject"), breaks_glass("oldObject"));
    let message = format!(
        "protected against deletion: annotate it with {}=<reason> first",
        names::ANNOTATION_BREAK_GLASS
    );
    json!({
        "expression": format!("!{protects} || {breaks}"),
        "message": message,
        "reason": "Forbidden",
    })
}

fn refuse_removal(mark: LabelRole) -> Value {
    let (before, after) = (mark.protects("oldObject"), mark.protects("object"));
    let exempt = has("object", "labels", names::LABEL_STRICT_EXEMPT, "true");
    let breaks = breaks_glass("object");
    let message = format!(
        "strict mode: the label {} alone cannot remove the protection: also set the label {}=true, or the annotation {}=<reason>",
        names::LABEL_PROTECTION,
        names::LABEL_STRICT_EXEMPT,
        names::ANNOTATION_BREAK_GLASS
    );
    json!({
        "expression": format!("!{before} || {after} || ({exempt}) || {breaks}"),
        "message": message,
        "reason": "Forbidden",
    })
}

fn constraints(groups: &[(&str, &[&str])], operations: &[&str]) -> Value {
    let rules: Vec<Value> = groups
        .iter()
        .map(|(group, resources)| {
            json!({
                "apiGroups": [group],
                "apiVersions": ["*"],
                "operations": operations,
                "resources": resources,
                "scope": "*",
            })
        })
        .collect();
    json!({ "matchPolicy": "Equivalent", "resourceRules": rules })
}
