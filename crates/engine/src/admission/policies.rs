//! Policies of the API server for rules: `ValidatingAdmissionPolicies`, and `MutatingAdmissionPolicies` where it serves them.

use serde_json::{Value, json};

use super::{
    joined,
    matching::{Matched, failure_policy, match_conditions, scale_conditions},
};
use orkestra_language::api::{Operation, names};
use orkestra_object::value::Node;
use orkestra_plan::{CelRule, Completion, Moment, OnScale, OperatorPlan, Plan, ValidationRulePlan};

/// The subresource that `kubectl scale` and autoscalers write: the number of replicas changes without a write of the object.
pub const SCALE: &str = "scale";

/// What policies depend on beside the Katalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyOptions {
    /// The identities of Orkestra itself, whose writes for purposes of its own are not judged.
    pub users: Vec<String>,
    /// The namespace of Orkestra; its labelled objects there are protected too.
    pub namespace: Option<String>,
}

/// Returns the policies, each followed by its binding, for the rules of `plan` that CEL can say: one for rules that refuse
/// and one for rules that warn, for each operator. They match as passes select: no object that is being deleted, and none
/// that the operator does not reconcile. They need no webhook, so a Katalog has them unless it declares `enabled: false`.
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
            policies.extend(
                of_scale(operator, (purpose, warns), &said)
                    .into_iter()
                    .flatten(),
            );
        }
    }
    policies
}

/// Returns the rule as CEL says it, if a policy enforces it.
pub(crate) fn in_policy<'r>(
    operator: &OperatorPlan,
    rule: &'r ValidationRulePlan,
) -> Option<&'r CelRule> {
    let admission = &operator.admission;
    let is_asked = admission.enabled != Some(false) && admission.validation;
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
pub(crate) fn in_mutating_policy<'r>(
    operator: &OperatorPlan,
    rule: &'r Completion,
) -> Option<&'r str> {
    let admission = &operator.admission;
    let is_asked = admission.enabled != Some(false) && admission.mutation;
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
    let asked: Vec<Operation> = (operator.admission.operations.iter())
        .copied()
        .filter(|one| *one != Operation::Delete)
        .collect();
    let conditions = match_conditions(operator, &options.users, (&asked, Matched::Operated));
    let written = (&*operator.resource.version, None);
    let constraints = constraints(operator, written, &operations);
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
    let warns = purpose == "warn";
    let (variables, validations) = validations(rules, warns);
    let operations: Vec<&str> = operator
        .admission
        .operations
        .iter()
        .map(|operation| operation.as_str())
        .collect();
    let asked = (&*operator.admission.operations, Matched::Operated);
    let conditions = match_conditions(operator, &options.users, asked);
    Policy {
        operator,
        purpose,
        operations: &operations,
        version: &operator.resource.version,
        subresource: None,
        on_failure: failure_policy(operator, operator.admission.failure_policy).as_str(),
        action: action(warns),
        conditions,
        variables,
        validations,
    }
    .nodes()
}

/// Returns the policy, and its binding, for writes of the subresource `scale`, by which the number of replicas changes without a write
/// of the object; none if none of `rules` reads it.
fn of_scale(
    operator: &OperatorPlan,
    (purpose, warns): (&str, bool),
    rules: &[&CelRule],
) -> Option<[Node; 2]> {
    let on_scale = rules.iter().filter_map(|rule| match &rule.on_scale {
        OnScale::Rule(rule) => Some(&**rule),
        OnScale::Unaffected | OnScale::Webhook => None,
    });
    let rules: Vec<&CelRule> = on_scale.collect();
    let update = Operation::Update;
    if rules.is_empty() || !operator.admission.operations.contains(&update) {
        return None;
    }
    let (variables, validations) = validations(&rules, warns);
    let policy = Policy {
        operator,
        purpose: &format!("{purpose}-scale"),
        operations: &[update.as_str()],
        // A `Scale` is the same in each version of the kind.
        version: "*",
        subresource: Some(SCALE),
        on_failure: failure_policy(operator, operator.admission.failure_policy).as_str(),
        action: action(warns),
        conditions: scale_conditions(operator),
        variables,
        validations,
    };
    Some(policy.nodes())
}

fn action(warns: bool) -> &'static str {
    if warns { "Warn" } else { "Deny" }
}

/// Returns the variables and validations for rules. The API server shows each warning, but only the first of the validations that
/// refuse.
fn validations(rules: &[&CelRule], warns: bool) -> (Vec<Value>, Vec<Value>) {
    match rules {
        [_, _, ..] if !warns => joined::validation(rules),
        _ => {
            let each = rules.iter().map(|rule| validation(rule));
            (Vec::new(), each.collect())
        }
    }
}

fn validation(rule: &CelRule) -> Value {
    let CelRule {
        expression,
        message,
        message_expression,
        on_scale: _,
    } = rule;
    let mut validation =
        json!({ "expression": expression, "message": message, "reason": "Invalid" });
    if let Some(said) = message_expression {
        validation["messageExpression"] = json!(said);
    }
    validation
}

/// A policy about the custom resources of an operator.
pub(crate) struct Policy<'a> {
    pub(crate) operator: &'a OperatorPlan,
    /// A word that distinguishes the policies of one operator.
    pub(crate) purpose: &'a str,
    pub(crate) operations: &'a [&'a str],
    /// The version to which objects are converted, or `*`.
    pub(crate) version: &'a str,
    /// The subresource whose writes it is about; none for those of objects.
    pub(crate) subresource: Option<&'a str>,
    /// The failure policy.
    pub(crate) on_failure: &'a str,
    pub(crate) action: &'a str,
    pub(crate) conditions: Vec<Value>,
    /// Expressions that `validations` name.
    pub(crate) variables: Vec<Value>,
    pub(crate) validations: Vec<Value>,
}

impl Policy<'_> {
    /// Returns the policy and its binding.
    pub(crate) fn nodes(self) -> [Node; 2] {
        let (version, subresource) = (self.version, self.subresource);
        let constraints = constraints(self.operator, (version, subresource), self.operations);
        let name = names::policy(
            self.purpose,
            &self.operator.full_name(),
            &self.operator.name,
        );
        let katalog = self.operator.katalog.to_string();
        let spec = json!({
            "failurePolicy": self.on_failure,
            "matchConstraints": constraints,
            "matchConditions": self.conditions,
            "variables": self.variables,
            "validations": self.validations,
        });
        with_binding((&name, &katalog), self.action, &spec)
    }
}

/// Returns what a policy about the custom resources of an operator matches.
fn constraints(
    operator: &OperatorPlan,
    (version, subresource): (&str, Option<&str>),
    operations: &[&str],
) -> Value {
    let resource = &operator.resource;
    let plural = resource.plural.as_deref().unwrap_or_default();
    let written = match subresource {
        Some(subresource) => format!("{plural}/{subresource}"),
        None => plural.to_owned(),
    };
    json!({
        "matchPolicy": "Equivalent",
        "resourceRules": [{
            "apiGroups": [&*resource.group],
            "apiVersions": [version],
            "operations": operations,
            "resources": [written],
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
pub(crate) fn bound(
    (name, katalog): (&str, &str),
    (failure_policy, action): (&str, &str),
    constraints: &Value,
    (conditions, validations): (Vec<Value>, Vec<Value>),
) -> [Node; 2] {
    let spec = json!({
        "failurePolicy": failure_policy,
        "matchConstraints": constraints,
        "matchConditions": conditions,
        "validations": validations,
    });
    with_binding((name, katalog), action, &spec)
}

fn with_binding((name, katalog): (&str, &str), action: &str, spec: &Value) -> [Node; 2] {
    const API_VERSION: &str = "admissionregistration.k8s.io/v1";
    let metadata = metadata(name, katalog);
    let policy = json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": spec,
    });
    let binding = json!({
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": { "policyName": name, "validationActions": [action] },
    });
    [Node::from(&policy), Node::from(&binding)]
}

/// The operations that store an object.
pub(crate) const WRITES: [Operation; 2] = [Operation::Create, Operation::Update];
