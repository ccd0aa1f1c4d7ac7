//! `ValidatingAdmissionPolicies` for protection against deletion and of namespaces.
//!
//! ```text
//!  DELETE of a custom resource or a definition ─┬─ label `orkestra.io/deletion-protection: "false"`, outside strict mode ─► passes
//!                                               ├─ annotation `orkestra.orkspace.io/break-glass` ───────────────────────► passes
//!                                               ├─ by uid, by Orkestra or by Kubernetes' garbage collector ─────────────► passes
//!                                               └─ else ────────────────────────────────────────────────────────────────► refused
//! ```
//!
//! The label `orkestra.io/deletion-protection: "true"` protects Orkestra's own objects. Policies are part of the API server:
//! they protect also while no replica runs. No policy matches policies, so that they can always be deleted.

use serde_json::{Value, json};

use super::{
    matching::{
        Matched, condition, failure_policy, listed, match_conditions, not_internal_deletion,
        permitted,
    },
    policies::{Policy, PolicyOptions, WRITES, bound},
};
use orkestra_language::api::{FailurePolicy, Operation, names};
use orkestra_object::value::Node;
use orkestra_plan::{DeletionPlan, OperatorPlan, Plan, cel::quoted};

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
        for operator in &plan.operators {
            let on_failure = failure_policy(operator, namespaces.failure_policy);
            policies.extend(namespaced(operator, on_failure, options));
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
    let policy = |purpose, operations: &[Operation], validations| {
        let asked = (operations, Matched::Operated);
        let policy = Policy {
            operator,
            purpose,
            operations: &operations
                .iter()
                .map(|one| one.as_str())
                .collect::<Vec<_>>(),
            version: "*",
            subresource: None,
            on_failure: failure_policy(operator, deletion.failure_policy).as_str(),
            action: "Deny",
            conditions: match_conditions(operator, &internal(options), asked),
            variables: Vec::new(),
            validations,
        };
        policy.nodes()
    };
    let refused = vec![refuse_deletion(LabelRole::Unless)];
    let mut nodes = policy("delete-protection", &DELETES, refused).to_vec();
    if protection.strict {
        let refused = vec![refuse_removal(LabelRole::Unless)];
        nodes.extend(policy("strict-mode", &UPDATES, refused));
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
    let of = |purpose, operations: &[Operation], conditions, validations| {
        let name = names::policy(purpose, &plan.katalog.to_string(), "definitions");
        let groups = [("apiextensions.k8s.io", &["customresourcedefinitions"][..])];
        bound(
            (&name, &plan.katalog.to_string()),
            (NOT_INSTANCES.as_str(), "Deny"),
            &constraints(&groups, operations),
            (conditions, validations),
        )
    };
    let mut conditions = vec![is_one("oldObject")];
    conditions.extend(not_internal_deletion(&internal(options)));
    let refused = vec![refuse_deletion(LabelRole::Unless)];
    let mut nodes = of("delete-protection", &DELETES, conditions, refused).to_vec();
    if deletion.strict {
        let conditions = vec![is_one("object"), not_deleted()];
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
    let of = |purpose, operations: &[Operation], conditions, validations| {
        let name = names::policy(purpose, &plan.katalog.to_string(), "orkestra");
        bound(
            (&name, &plan.katalog.to_string()),
            (NOT_INSTANCES.as_str(), "Deny"),
            &constraints(&OWN, operations),
            (conditions, validations),
        )
    };
    let mut conditions = vec![here.clone()];
    conditions.extend(not_internal_deletion(&internal(options)));
    let refused = vec![refuse_deletion(LabelRole::If)];
    let mut nodes = of("delete-protection", &DELETES, conditions, refused).to_vec();
    if deletion.strict {
        let conditions = vec![here, not_deleted()];
        let refused = vec![refuse_removal(LabelRole::If)];
        nodes.extend(of("strict-mode", &UPDATES, conditions, refused));
    }
    nodes
}

/// Refuses custom resources in namespaces that are not permitted.
fn namespaced(
    operator: &OperatorPlan,
    on_failure: FailurePolicy,
    options: &PolicyOptions,
) -> Vec<Node> {
    let Some(expression) = permitted(&operator.watched) else {
        return Vec::new();
    };
    let asked = (&WRITES[..], Matched::AnyNamespace);
    let conditions = match_conditions(operator, &options.users, asked);
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
        operations: &WRITES.map(Operation::as_str),
        version: "*",
        subresource: None,
        on_failure: on_failure.as_str(),
        action: "Deny",
        conditions,
        variables: Vec::new(),
        validations: vec![validation],
    };
    policy.nodes().to_vec()
}

const DELETES: [Operation; 1] = [Operation::Delete];
const UPDATES: [Operation; 1] = [Operation::Update];
/// The failure policy for objects that are not instances of our definitions.
const NOT_INSTANCES: FailurePolicy = FailurePolicy::Ignore;

/// Returns the condition that the object is not being deleted: only then may its finalizers be removed.
fn not_deleted() -> Value {
    condition(
        "not-being-deleted",
        "!has(object.metadata.deletionTimestamp)",
    )
}

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

/// Returns the users whose deletions of one certain object follow from others: Orkestra's, and Kubernetes' garbage collector.
fn internal(options: &PolicyOptions) -> Vec<String> {
    let users = options.users.iter().cloned();
    users.chain([GARBAGE_COLLECTOR.to_owned()]).collect()
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

fn constraints(groups: &[(&str, &[&str])], operations: &[Operation]) -> Value {
    let operations: Vec<&str> = operations.iter().map(|one| one.as_str()).collect();
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
