//! Policies and the evaluator return the same verdict.
//!
//! One file: all tests evaluate policies by the same helpers.

use orkestra_engine::admission::{
    AdmissionVerdict, Admitted, Answers, Operation, Permission, PolicyOptions, derived_permissions,
    explain, mutate, mutating_policies, policies, protection,
};
use orkestra_object::value::Node;
use orkestra_plan::{OperatorPlan, Plan};
use serde_json::{Value, json};

use super::{
    cel::{Request, evaluate, evaluate_with, operations},
    compiled, denials, generate, judged, patched, plan, review,
};

/// Returns the messages of the failed validations of all policies that match.
pub(crate) fn refused(nodes: &[Node], purpose: &str, request: &Request<'_>) -> Vec<String> {
    let mut messages = Vec::new();
    for policy in nodes.iter().map(Node::to_json) {
        let is_meant = policy["kind"] == "ValidatingAdmissionPolicy"
            && policy["metadata"]["name"]
                .as_str()
                .unwrap()
                .starts_with(purpose)
            && policy["spec"]["matchConstraints"]["resourceRules"][0]["operations"]
                .as_array()
                .unwrap()
                .contains(&json!(request.operation));
        if !is_meant {
            continue;
        }
        let conditions = policy["spec"]["matchConditions"].as_array().unwrap();
        let holds = |condition: &Value| {
            evaluate(condition["expression"].as_str().unwrap(), request) == json!(true)
        };
        if !conditions.iter().all(holds) {
            continue;
        }
        let mut variables = json!({});
        for variable in policy["spec"]["variables"].as_array().into_iter().flatten() {
            let expression = variable["expression"].as_str().unwrap();
            let value = evaluate_with(expression, request, &variables);
            variables[variable["name"].as_str().unwrap()] = value;
        }
        let evaluate =
            |expression: &Value| evaluate_with(expression.as_str().unwrap(), request, &variables);
        for validation in policy["spec"]["validations"].as_array().unwrap() {
            if evaluate(&validation["expression"]) == json!(false) {
                let message = match validation.get("messageExpression") {
                    Some(said) => evaluate(said),
                    None => validation["message"].clone(),
                };
                messages.push(message.as_str().unwrap().to_owned());
            }
        }
    }
    messages
}

fn cut(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[test]
fn policies_and_the_evaluator_have_one_verdict_for_random_rules_and_objects() {
    let (mut compared, mut said, mut denied) = (0, 0, 0);
    // `CASES=1200` takes a few minutes.
    let cases = std::env::var("CASES").map_or(300, |cases| cases.parse().unwrap());
    for seed in 0..cases {
        let katalog = generate::katalog(seed, seed % 4 == 3);
        let Ok((plan, _)) = compiled(&katalog.to_string(), &[generate::definition()]) else {
            continue;
        };
        let operator = &plan.operators[0];
        let nodes = policies(&plan, &PolicyOptions::default());
        said += nodes.len() / 2;
        for at in 0..10 {
            let object = generate::object(seed * 1000 + at);
            let old = generate::object(seed * 1000 + at + 500);
            let null = Value::Null;
            let (operation, old) = if at % 2 == 0 {
                (Operation::Create, &null)
            } else {
                (Operation::Update, &old)
            };
            let verdict = judged(operator, &review(operation, &object, old));
            let request = Request {
                operation: operation.as_str(),
                object: &object,
                old,
                user: "somebody",
                options: &Value::Null,
            };
            denied += policies_refuse_the_same(&nodes, operator, &katalog, &request, &verdict);
            compared += 1;
        }
    }
    assert!(
        compared > 2000 && said > 100 && denied > 500,
        "{compared} {said} {denied}"
    );
}

/// Checks that the policies deny and warn like the evaluator, for rules that CEL can express. Returns the number of messages.
fn policies_refuse_the_same(
    nodes: &[Node],
    operator: &OperatorPlan,
    katalog: &Value,
    request: &Request<'_>,
    verdict: &AdmissionVerdict,
) -> usize {
    let Request { object, old, .. } = request;
    let mut denied = 0;
    let in_policy: Vec<&str> = operator
        .rules
        .validation
        .iter()
        .filter(|rule| rule.cel.is_ok())
        .map(|rule| &*rule.label)
        .collect();
    let expected = |lines: Vec<String>| -> Vec<String> {
        let is_said = |line: &String| {
            in_policy
                .iter()
                .any(|label| line.starts_with(&format!("{label}: ")))
        };
        lines
            .into_iter()
            .filter(is_said)
            .map(|line| cut(&line))
            .collect()
    };
    let found = |purpose| refused(nodes, purpose, request);
    for (purpose, lines) in [
        ("deny.", denials(verdict)),
        ("warn.", verdict.warnings.clone()),
    ] {
        let (mut expected, found) = (expected(lines), found(purpose));
        denied += expected.len();
        // A refusal lists all violations: the API server shows one message.
        if purpose == "deny." && !expected.is_empty() {
            expected = vec![expected.join("; ")];
        }
        // A policy replaces the parts of a message that CEL cannot express by `…`. They are not compared.
        let same = expected.len() == found.len()
            && expected
                .iter()
                .zip(&found)
                .all(|(a, b)| a == &cut(b) || b.contains('…'));
        assert!(
            same,
            "{expected:?} {found:?}\n{katalog:#}\n{object:#}\n{old:#}\n{:?}",
            operator.rules.validation
        );
    }
    denied
}

/// Returns the object after the mutating policies, as the API server applies them: each mutation reads the result of the previous
/// ones.
fn completed(nodes: &[Node], object: &Value) -> Value {
    let mut object = object.clone();
    for policy in nodes.iter().map(Node::to_json) {
        for mutation in policy["spec"]["mutations"].as_array().into_iter().flatten() {
            let expression = mutation["jsonPatch"]["expression"].as_str().unwrap();
            let request = Request::creation(&object);
            for operation in operations(expression, &request) {
                assert_eq!(operation["op"], "add");
                let (parent, key) = operation["path"]
                    .as_str()
                    .unwrap()
                    .rsplit_once('/')
                    .unwrap();
                let key = key.replace("~1", "/").replace("~0", "~");
                object.pointer_mut(parent).unwrap()[key] = operation["value"].clone();
            }
        }
    }
    object
}

#[test]
fn a_mutating_policy_before_the_webhook_changes_nothing_of_what_the_webhook_makes() {
    let (mut compared, mut changed, mut whole) = (0, 0, 0);
    for seed in 0..600 {
        let katalog = generate::katalog(seed, true);
        let Ok((plan, _)) = compiled(&katalog.to_string(), &[generate::definition()]) else {
            continue;
        };
        let operator = &plan.operators[0];
        let nodes = mutating_policies(&plan, &PolicyOptions::default(), "v1beta1");
        let by_webhook = |object: &Value| {
            let review = review(Operation::Create, object, &Value::Null);
            let now = jiff::Timestamp::UNIX_EPOCH;
            match mutate(operator, &review, now, &Answers::new()) {
                Admitted::Done(verdict) => patched(object, &verdict),
                Admitted::Need(reads) => panic!("{reads:?}"),
            }
        };
        for at in 0..6 {
            let object = generate::object(seed * 1000 + at);
            let (expected, early) = (by_webhook(&object), completed(&nodes, &object));
            let context = || format!("{katalog:#}\n{object:#}\n{:?}", operator.rules.mutation);
            assert_eq!(by_webhook(&early), expected, "{}", context());
            if operator.rules.mutation.iter().all(|rule| rule.cel.is_ok()) {
                assert_eq!(early, expected, "{}", context());
                whole += 1;
            }
            changed += usize::from(early != object);
            compared += 1;
        }
    }
    assert!(
        compared > 2000 && changed > 500 && whole > 500,
        "{compared} {changed} {whole}"
    );
}

pub(crate) fn secured(security: &str, entry: &str) -> Plan {
    let text = format!(
        "apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {{ name: waters }}
spec:
  security: {security}
  crds:
    pond:
      apiTypes: {{ group: water.example, version: v1, kind: Pond, plural: ponds }}
{entry}
"
    );
    plan(&text, &[generate::definition()])
}

pub(crate) fn options() -> PolicyOptions {
    PolicyOptions {
        users: vec!["system:serviceaccount:orkestra-system:orkestra".into()],
        namespace: Some("orkestra-system".into()),
    }
}

/// Two rules that CEL can express, and one that it cannot.
const RULES: &str = "      validation:
        rules:
          - { field: spec.image, prefix: 'myorg/', message: 'images must come from the internal registry' }
          - { field: spec.depth, min: 3, message: 'a pond of {{ .spec.depth }} is too shallow' }
          - { field: spec.tier, regex: '^\\d+$', optional: true }
      mutation:
        rules: [{ field: spec.replicas, default: '2' }]";

#[test]
fn rules_are_policies_unless_the_katalog_says_no_and_a_refusal_lists_all_of_them() {
    let object = json!({ "metadata": { "name": "a" }, "spec": { "image": "x", "depth": 1 } });
    let request = Request::creation(&object);
    let all = [
        "spec.image: images must come from the internal registry; spec.depth: a pond of 1 is too shallow",
    ];
    let enabled = |value: &str| format!("{{ webhooks: {{ admission: {{ enabled: {value} }} }} }}");
    for (security, refusal, mutating) in [
        ("{}".to_owned(), &all[..], 2),
        (enabled("true"), &all[..], 2),
        (enabled("false"), &[][..], 0),
    ] {
        let plan = secured(&security, RULES);
        let nodes = policies(&plan, &options());
        assert_eq!(
            refused(&nodes, "deny.pond", &request),
            refusal,
            "{security}"
        );
        let completing = mutating_policies(&plan, &options(), "v1");
        assert_eq!(completing.len(), mutating, "{security}");
        for policy in nodes.iter().map(Node::to_json) {
            let text = policy["spec"]["validations"][0]["message"].as_str();
            let is_one = text.is_none_or(|text| text.starts_with("not all of these rules hold: "));
            assert!(is_one, "{policy}");
        }
    }
    // The webhook says the same.
    let plan = secured("{}", RULES);
    let verdict = judged(
        &plan.operators[0],
        &review(Operation::Create, &object, &Value::Null),
    );
    assert_eq!(verdict.message(), all[0]);
    // A message that is too long for the API server is cut.
    let long = json!({ "metadata": { "name": "a" }, "spec": { "image": "x", "depth": 1 } });
    let rules: Vec<String> = (0..20)
        .map(|at| {
            let message = "ü".repeat(200);
            format!("          - {{ name: r{at}, field: spec.image, prefix: 'myorg/', message: '{message}' }}")
        })
        .collect();
    let plan = secured(
        "{}",
        &format!("      validation:\n        rules:\n{}", rules.join("\n")),
    );
    let nodes = policies(&plan, &options());
    let request = Request {
        object: &long,
        ..request
    };
    let said = refused(&nodes, "deny.pond", &request);
    assert!(said.len() == 1 && said[0].len() <= 5 * 1024, "{said:?}");
    assert!(
        said[0].starts_with("r0: ü") && said[0].ends_with('…'),
        "{said:?}"
    );
}

#[test]
fn the_place_of_a_rule_is_that_which_the_default_gives_it() {
    let places = |security: &str| -> Vec<(&'static str, String)> {
        let plan = secured(security, RULES);
        let rows = explain(&plan).into_iter();
        rows.map(|row| (row.place.as_str(), row.rule)).collect()
    };
    let of = |places: [&'static str; 4]| -> Vec<(&'static str, String)> {
        let rules = ["spec.replicas", "spec.image", "spec.depth", "spec.tier"];
        let rules = rules.map(str::to_owned);
        places.into_iter().zip(rules).collect()
    };
    assert_eq!(places("{}"), of(["passes", "policy", "policy", "passes"]));
    assert_eq!(
        places("{ webhooks: { admission: { enabled: true } } }"),
        of(["webhook", "policy", "policy", "webhook"])
    );
    assert_eq!(
        places("{ webhooks: { admission: { enabled: false } } }"),
        of(["passes"; 4])
    );
    // A rule about the previous value, which only admission knows, and which CEL cannot express.
    let rule = "      validation: { rules: [{ field: spec.more, immutable: true }] }";
    let rows = explain(&secured("{}", rule));
    assert_eq!(rows[0].place.as_str(), "nowhere", "{}", rows[0]);
}

#[test]
fn only_katalogs_with_rules_need_permissions_for_policies() {
    let of_policies = |security: &str, entry: &str| -> Vec<String> {
        let all = derived_permissions(&secured(security, entry));
        let words = all.iter().map(Permission::to_string);
        words
            .filter(|word| word.contains("admissionpolic"))
            .collect()
    };
    assert!(of_policies("{}", "").is_empty());
    assert!(of_policies("{ webhooks: { admission: { enabled: false } } }", RULES).is_empty());
    let found = of_policies("{}", RULES);
    for verb in ["create", "delete", "list", "patch", "watch"] {
        for kind in ["validatingadmissionpolicies", "mutatingadmissionpolicies"] {
            let is_it = |word: &String| word.starts_with(&format!("{verb} {kind}"));
            assert!(found.iter().any(is_it), "{verb} {kind}: {found:#?}");
        }
    }
}

#[test]
fn protected_objects_are_deleted_only_with_a_reason() {
    let plan = secured("{ deletionProtection: {} }", "");
    let nodes = protection(&plan, &options());
    let by_uid = json!({ "preconditions": { "uid": "u" } });
    let deletes = |object: &Value, user: &str| {
        let request = Request {
            operation: "DELETE",
            object: &Value::Null,
            old: object,
            user,
            options: &by_uid,
        };
        refused(&nodes, "delete-protection.pond", &request).is_empty()
    };
    let pond = |metadata: Value| json!({ "metadata": metadata });
    let bare = pond(json!({ "name": "a", "namespace": "b" }));
    assert!(!deletes(&bare, "somebody"));
    assert!(deletes(
        &bare,
        "system:serviceaccount:orkestra-system:orkestra"
    ));
    assert!(deletes(
        &bare,
        "system:serviceaccount:kube-system:generic-garbage-collector"
    ));
    let open =
        pond(json!({ "name": "a", "labels": { "orkestra.io/deletion-protection": "false" } }));
    assert!(deletes(&open, "somebody"));
    let broken = pond(
        json!({ "name": "a", "annotations": { "orkestra.orkspace.io/break-glass": "moved" } }),
    );
    assert!(deletes(&broken, "somebody"));
    let empty =
        pond(json!({ "name": "a", "annotations": { "orkestra.orkspace.io/break-glass": "" } }));
    assert!(!deletes(&empty, "somebody"));
    let one = nodes.iter().map(Node::to_json).find(|node| {
        node["spec"]["matchConditions"]
            .to_string()
            .contains("ponds.water.example")
    });
    // A definition is no instance of one of ours.
    assert_eq!(one.unwrap()["spec"]["failurePolicy"], "Ignore");
    let own: Vec<Value> = nodes
        .iter()
        .map(Node::to_json)
        .filter(|node| node.to_string().contains("deployments"))
        .collect();
    assert!(own.len() == 1 && own[0].to_string().contains("orkestra-system"));
    // Policies are not matched by policies, so that an uninstallation can always remove them first.
    assert!(!nodes.iter().any(|node| {
        node.to_json()["spec"]["matchConstraints"]
            .to_string()
            .contains("admissionregistration")
    }));
}

#[test]
fn strict_mode_keeps_the_protection() {
    let plan = secured(
        "{ deletionProtection: { strictMode: true } }",
        "      deletionProtection: { protectCRD: false }",
    );
    let nodes = protection(&plan, &options());
    let updates = |old: Value, new: Value| {
        let (old, new) = (json!({ "metadata": old }), json!({ "metadata": new }));
        let request = Request {
            operation: "UPDATE",
            object: &new,
            old: &old,
            user: "somebody",
            options: &Value::Null,
        };
        refused(&nodes, "strict-mode.pond", &request).is_empty()
    };
    let labels = |value: &str| json!({ "name": "a", "labels": { "orkestra.io/deletion-protection": value } });
    assert!(!updates(json!({ "name": "a" }), labels("false")));
    assert!(
        updates(json!({ "name": "a" }), labels("true"))
            && updates(labels("false"), labels("false"))
    );
    let mut exempt = labels("false");
    exempt["labels"]["orkestra.io/strict-mode-exempt"] = json!("true");
    assert!(updates(json!({ "name": "a" }), exempt));
    assert!(!nodes.iter().any(|node| {
        node.to_json()
            .to_string()
            .contains("customresourcedefinitions")
    }));
}

#[test]
fn namespaces_are_protected_as_passes_select() {
    let plan = secured(
        "{ namespaceProtection: { restrictedNamespaces: [closed] } }",
        "      restrictedNamespaces: [other]",
    );
    let nodes = protection(&plan, &options());
    for (namespace, is_open) in [
        ("open", true),
        ("closed", false),
        ("other", false),
        ("", true),
    ] {
        let object = json!({ "metadata": { "name": "a", "namespace": namespace } });
        let request = Request::creation(&object);
        assert_eq!(
            refused(&nodes, "namespace-protection.", &request).is_empty(),
            is_open,
            "{namespace}"
        );
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        assert_eq!(plan.operators[0].watched.admits(namespace, "a"), is_open);
    }
}

#[test]
fn the_permissions_of_a_katalog_are_listed_once_and_in_words() {
    let plan = secured(
        "{}",
        "      operatorBox: { onReconcile: { custom: [{ apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: { name: all }, roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin }, subjects: [] }], configMaps: [{ name: a, data: { b: c } }] } }",
    );
    let all = derived_permissions(&plan);
    let mut sorted = all.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(all, sorted);
    let words: Vec<String> = all.iter().map(Permission::to_string).collect();
    for expected in [
        "create clusterrolebindings.rbac.authorization.k8s.io in all namespaces",
        "bind clusterroles.rbac.authorization.k8s.io `cluster-admin` in all namespaces",
        "create configmaps in all namespaces",
    ] {
        assert!(
            words.iter().any(|word| word == expected),
            "{expected}: {words:#?}"
        );
    }
}
