//! Policies of the API server for rules: `ValidatingAdmissionPolicies`, and `MutatingAdmissionPolicies` where it serves them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    api::{Operation, names},
    plan::{CelRule, Completion, Moment, OperatorPlan, Plan, ValidationRulePlan, cel::quoted},
    value::Node,
};

/// What policies depend on beside the Katalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyOptions {
    /// The users to whom no policy applies: the identities of Orkestra itself.
    pub users: Vec<String>,
    /// The namespace of Orkestra; its labelled objects there are protected too.
    pub namespace: Option<String>,
}

/// Returns the policies, each followed by its binding, for the rules of `plan` that CEL can say: one for rules that refuse
/// and one for rules that warn, for each operator. They match as passes select: no object that is being deleted, and none
/// that the operator does not reconcile.
pub fn policies(plan: &Plan, options: &PolicyOptions) -> Vec<Node> {
    let mut policies = Vec::new();
    for operator in &plan.operators {
        for (purpose, warns) in [("deny", false), ("warn", true)] {
            let rules = operator.rules.validation.iter();
            let rules = rules.filter(|rule| rule.warns == warns);
            let said: Vec<&CelRule> = rules.filter_map(|rule| in_policy(operator, rule)).collect();
            if !said.is_empty() {
                policies.extend(of_rules(operator, purpose, &said, options));
            }
        }
    }
    policies
}

/// Returns the rule as CEL says it, if a policy enforces it.
pub(super) fn in_policy<'r>(
    operator: &OperatorPlan,
    rule: &'r ValidationRulePlan,
) -> Option<&'r CelRule> {
    let admission = &operator.admission;
    let is_asked = admission.enabled == Some(true) && admission.validation;
    let said = rule.cel.as_ref().ok()?;
    (is_asked && rule.moments.includes(Moment::Admission)).then_some(said)
}

/// Returns the policies, each followed by its binding, for the rules of `mutation` that CEL can say: one for each operator.
/// `version` is that of the API in which the server has them.
///
/// They hold while no webhook answers. The webhook evaluates the same rules again, which changes nothing.
pub fn mutating_policies(plan: &Plan, options: &PolicyOptions, version: &str) -> Vec<Node> {
    let operators = plan.operators.iter();
    operators
        .filter_map(|operator| mutating(operator, options, version))
        .flatten()
        .collect()
}

/// Returns the rule as CEL says it, if a policy applies it where the API server has such policies.
pub(super) fn in_mutating_policy<'r>(
    operator: &OperatorPlan,
    rule: &'r Completion,
) -> Option<&'r str> {
    let admission = &operator.admission;
    let is_asked = admission.enabled == Some(true) && admission.mutation;
    rule.cel.as_deref().ok().filter(|_| is_asked)
}

fn mutating(operator: &OperatorPlan, options: &PolicyOptions, version: &str) -> Option<[Node; 2]> {
    let rules = operator.rules.mutation.iter();
    let said = rules.filter_map(|rule| in_mutating_policy(operator, rule));
    let mutations: Vec<Value> = said
        .map(|expression| {
            json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } })
        })
        .collect();
    let operations = &operator.admission.operations;
    let operations: Vec<&str> = operations
        .iter()
        .filter(|one| **one != Operation::Delete)
        .map(|one| one.as_str())
        .collect();
    if mutations.is_empty() || operations.is_empty() {
        return None;
    }
    let conditions = reconciled(operator, options);
    let constraints = constraints(operator, &operator.resource.version, &operations);
    let name = names::policy("mutate", &operator.full_name(), &operator.name);
    let (api_version, metadata) = (
        format!("admissionregistration.k8s.io/{version}"),
        metadata(&name, &operator.katalog.to_string()),
    );
    let policy = json!({
        "apiVersion": api_version,
        "kind": "MutatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            // As the webhook: what cannot be completed now is completed by passes.
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "matchConstraints": constraints,
            "matchConditions": conditions,
            "mutations": mutations,
        },
    });
    let binding = json!({
        "apiVersion": api_version,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": { "policyName": name },
    });
    Some([Node::from(&policy), Node::from(&binding)])
}

fn of_rules(
    operator: &OperatorPlan,
    purpose: &str,
    rules: &[&CelRule],
    options: &PolicyOptions,
) -> [Node; 2] {
    let validations: Vec<Value> = rules.iter().map(|rule| validation(rule)).collect();
    let operations: Vec<&str> = operator
        .admission
        .operations
        .iter()
        .map(|operation| operation.as_str())
        .collect();
    let conditions = reconciled(operator, options);
    Policy {
        operator,
        purpose,
        operations: &operations,
        version: &operator.resource.version,
        on_failure: operator.admission.failure_policy.as_str(),
        action: if purpose == "warn" { "Warn" } else { "Deny" },
        conditions,
        validations,
    }
    .nodes()
}

fn validation(rule: &CelRule) -> Value {
    let CelRule {
        expression,
        message,
        message_expression,
    } = rule;
    let mut validation =
        json!({ "expression": expression, "message": message, "reason": "Invalid" });
    if let Some(said) = message_expression {
        validation["messageExpression"] = json!(said);
    }
    validation
}

/// A policy about the custom resources of an operator.
pub(super) struct Policy<'a> {
    pub(super) operator: &'a OperatorPlan,
    /// A word that distinguishes the policies of one operator.
    pub(super) purpose: &'a str,
    pub(super) operations: &'a [&'a str],
    /// The version to which objects are converted, or `*`.
    pub(super) version: &'a str,
    /// The failure policy.
    pub(super) on_failure: &'a str,
    pub(super) action: &'a str,
    pub(super) conditions: Vec<Value>,
    pub(super) validations: Vec<Value>,
}

impl Policy<'_> {
    /// Returns the policy and its binding.
    pub(super) fn nodes(self) -> [Node; 2] {
        let constraints = constraints(self.operator, self.version, self.operations);
        let name = names::policy(
            self.purpose,
            &self.operator.full_name(),
            &self.operator.name,
        );
        let katalog = self.operator.katalog.to_string();
        bound(
            (&name, &katalog),
            (self.on_failure, self.action),
            &constraints,
            (self.conditions, self.validations),
        )
    }
}

/// Returns what a policy about the custom resources of an operator matches.
fn constraints(operator: &OperatorPlan, version: &str, operations: &[&str]) -> Value {
    let resource = &operator.resource;
    json!({
        "matchPolicy": "Equivalent",
        "resourceRules": [{
            "apiGroups": [&*resource.group],
            "apiVersions": [version],
            "operations": operations,
            "resources": [resource.plural.as_deref().unwrap_or_default()],
            "scope": "*",
        }],
    })
}

/// Returns the metadata of a policy and of its binding.
fn metadata(name: &str, katalog: &str) -> Value {
    json!({
        "name": name,
        "labels": {
            names::LABEL_MANAGED: "true",
            names::LABEL_KATALOG: names::label_value(katalog),
        },
    })
}

/// Returns a policy of that name, and its binding.
pub(super) fn bound(
    (name, katalog): (&str, &str),
    (failure_policy, action): (&str, &str),
    constraints: &Value,
    (conditions, validations): (Vec<Value>, Vec<Value>),
) -> [Node; 2] {
    const API_VERSION: &str = "admissionregistration.k8s.io/v1";
    let metadata = metadata(name, katalog);
    let policy = json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": failure_policy,
            "matchConstraints": constraints,
            "matchConditions": conditions,
            "validations": validations,
        },
    });
    let binding = json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": { "policyName": name, "validationActions": [action] },
    });
    [Node::from(&policy), Node::from(&binding)]
}

/// Returns a condition of a policy.
pub(super) fn condition(name: &str, expression: impl Into<String>) -> Value {
    json!({ "name": name, "expression": expression.into() })
}

/// Returns the condition that the object is not being deleted: only then may its finalizers be removed.
pub(super) fn not_deleted() -> Value {
    condition(
        "not-being-deleted",
        "!has(object.metadata.deletionTimestamp)",
    )
}

/// Returns the condition that none of the users asks.
pub(super) fn not_of(users: &[String]) -> Option<Value> {
    let list = listed(users.iter().map(String::as_str));
    let expression = format!("!(request.userInfo.username in {list})");
    (!users.is_empty()).then(|| condition("not-orkestra", expression))
}

/// Returns texts as a list of CEL.
pub(super) fn listed<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(quoted).collect();
    format!("[{}]", texts.join(", "))
}

/// Returns the conditions that a rule applies to the object: the operator reconciles it, it is not being deleted, and Orkestra does
/// not write it.
fn reconciled(operator: &OperatorPlan, options: &PolicyOptions) -> Vec<Value> {
    let mut conditions = vec![not_deleted()];
    conditions.extend(not_of(&options.users));
    conditions.extend(selected(operator));
    conditions
}

/// Returns the conditions that the operator reconciles the object.
fn selected(operator: &OperatorPlan) -> Vec<Value> {
    let watched = &operator.watched;
    let mut conditions = Vec::new();
    if let Some(expression) = permitted(&watched.allowed, &watched.restricted) {
        conditions.push(condition("operated-namespaces", expression));
    }
    if !watched.labels.is_empty() {
        let labels = "object.metadata.labels";
        let has = watched.labels.iter().map(|(key, value)| {
            let (key, value) = (quoted(key), quoted(value));
            format!("{key} in {labels} && {labels}[{key}] == {value}")
        });
        let has: Vec<String> = has.collect();
        let expression = format!("has({labels}) && {}", has.join(" && "));
        conditions.push(condition("operated-labels", expression));
    }
    conditions
}

/// Returns the expression that is true in permitted namespaces, and for cluster-scoped objects; `None` if all are.
pub(super) fn permitted(
    allowed: &BTreeSet<Box<str>>,
    restricted: &BTreeSet<Box<str>>,
) -> Option<String> {
    let list = |names: &BTreeSet<Box<str>>| listed(names.iter().map(|name| &**name));
    let mut parts = Vec::new();
    if !restricted.is_empty() {
        parts.push(format!("!(request.namespace in {})", list(restricted)));
    }
    if !allowed.is_empty() {
        parts.push(format!("request.namespace in {}", list(allowed)));
    }
    (!parts.is_empty()).then(|| format!("request.namespace == \"\" || ({})", parts.join(" && ")))
}

/// The operations that store an object.
pub(super) const WRITES: [&str; 2] = [Operation::Create.as_str(), Operation::Update.as_str()];
