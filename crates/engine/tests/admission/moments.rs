//! The points in time at which rules apply, and the data that they can read there.

use orkestra_engine::admission::{
    Admitted, Answer, Answers, Enforcement, Operation, Read, admit, explain,
};
use orkestra_object::value::Node;
use serde_json::{Value, json};

use super::{compiled, created, denials, generate, judged, plan, review};

fn katalog(entry: &str) -> String {
    let lines = entry.lines().map(|line| format!("      {line}"));
    let entry = lines.collect::<Vec<_>>().join("\n");
    format!(
        "apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {{ name: waters }}
spec:
  security: {{ webhooks: {{ admission: {{ enabled: true }}, failurePolicy: Fail }} }}
  crds:
    pond:
      apiTypes: {{ group: water.example, version: v1, kind: Pond, plural: ponds }}
{entry}
"
    )
}

fn pond(spec: Value) -> Value {
    let mut pond = json!({ "metadata": { "name": "a", "namespace": "b" } });
    pond["spec"] = spec;
    pond
}

#[test]
fn the_old_object_and_the_operation_are_known_at_admission() {
    let text = katalog(
        "validation:
  rules:
    - { field: spec.depth, min: '{{ .old.spec.depth }}', message: 'from {{ .old.spec.depth }} to {{ .spec.depth }}', when: [{ field: operation, equals: UPDATE }] }
    - { name: engine, field: spec.text, immutable: true }
    - { field: spec.open, equals: 'true', fires: { admission: false } }",
    );
    let plan = plan(&text, &[generate::definition()]);
    let operator = &plan.operators[0];
    let update = |old: Value, new: Value| {
        denials(&judged(
            operator,
            &review(Operation::Update, &pond(new), &pond(old)),
        ))
    };
    assert_eq!(
        denials(&created(operator, &pond(json!({ "depth": 1 })))),
        [""; 0]
    );
    assert_eq!(
        update(json!({ "depth": 1 }), json!({ "depth": 2 })),
        [""; 0]
    );
    assert_eq!(
        update(json!({ "depth": 2 }), json!({ "depth": 1 })),
        ["spec.depth: from 2 to 1"]
    );
    assert_eq!(
        update(json!({ "text": "a" }), json!({ "text": "b" })),
        ["engine: spec.text cannot be changed"]
    );
    assert_eq!(
        update(json!({ "text": "a" }), json!({})),
        ["engine: spec.text cannot be changed"]
    );
    assert_eq!(
        update(json!({ "text": "" }), json!({ "text": "b" })),
        [""; 0]
    );
    let rules = &operator.rules.validation;
    let passes: Vec<bool> = rules
        .iter()
        .map(|rule| rule.moments.not_in_passes.is_none())
        .collect();
    assert_eq!(passes, [false, false, true]);
    let places: Vec<Enforcement> = explain(&plan).iter().map(|row| row.place).collect();
    assert_eq!(
        places,
        [
            Enforcement::Policy,
            Enforcement::Policy,
            Enforcement::Passes
        ]
    );
}

#[test]
fn only_rules_read_the_old_object() {
    let text = katalog(
        "operatorBox: { onReconcile: { configMaps: [{ name: x, data: { a: '{{ .old.spec.text }}' } }] } }",
    );
    let problems = compiled(&text, &[generate::definition()])
        .unwrap_err()
        .to_string();
    assert!(problems.contains("there is no `.old` here"), "{problems}");
}

#[test]
fn a_rule_that_never_applies_is_reported() {
    for (entry, expected) in [
        (
            "validation: { rules: [{ field: spec.text, immutable: true, fires: { admission: false } }] }",
            "the rule never applies",
        ),
        (
            "webhooks: { validation: false }\nvalidation: { rules: [{ field: spec.text, immutable: true }] }",
            "leave out `webhooks.validation: false`",
        ),
        (
            "validation: { rules: [{ field: spec.text, exists: true, fires: { admission: false, reconcile: false } }] }",
            "the rule never applies",
        ),
    ] {
        let problems = compiled(&katalog(entry), &[generate::definition()])
            .unwrap_err()
            .to_string();
        assert!(problems.contains(expected), "{problems}");
    }
}

#[test]
fn rules_about_what_passes_have_are_left_to_them_with_the_reason() {
    let text = katalog(
        "operatorBox: { onReconcile: { configMaps: [{ name: seen, data: { a: b } }] } }
mutation:
  rules:
    - { field: spec.filled, default: '{{ .children.configMap.metadata.name }}' }
    - { field: spec.depth, default: '3' }
validation:
  rules:
    - { field: spec.filled, exists: true }
    - { field: spec.text, equals: '{{ .status.phase }}' }
    - { field: spec.depth, max: '9' }
    - { field: spec.text, regex: '^\\d' }
    - { field: spec.image, prefix: 'myorg/' }",
    );
    let plan = plan(&text, &[generate::definition()]);
    let rows = explain(&plan);
    let reported: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                "{} {} {}: {}",
                row.block,
                row.rule,
                row.place.as_str(),
                row.why
            )
        })
        .collect();
    assert_eq!(
        reported,
        [
            "mutation spec.filled passes: it reads `.children`, which only passes have",
            "mutation spec.depth webhook: it changes the object; while the webhook is unreachable, an API server with MutatingAdmissionPolicies applies it too",
            "validation spec.filled passes: a rule that applies in passes only sets `spec.filled`",
            "validation spec.text passes: it reads `.status`, which passes write",
            "validation spec.depth webhook: `spec.depth` is set by a rule of `mutation` or `normalize`, which a policy does not see while the webhook is unreachable",
            "validation spec.text webhook: `^\\d` may have another meaning in CEL",
            "validation spec.image policy: the API server can evaluate it",
        ]
    );
    let verdict = created(&plan.operators[0], &pond(json!({ "image": "x" })));
    assert_eq!(
        denials(&verdict),
        [
            "spec.text: must match ^\\d",
            "spec.image: must start with myorg/"
        ]
    );
    assert_eq!(verdict.patch.len(), 1);
}

#[test]
fn rules_of_mutation_are_policies_up_to_the_first_that_cel_cannot_say() {
    let text = katalog(
        "mutation:
  rules:
    - { field: spec.depth, default: '3' }
    - { field: spec.more.name, override: made, when: [{ field: spec.open, equals: 'true' }] }
    - { field: spec.text, default: '{{ .spec.image }}' }
    - { field: spec.ratio, default: '2.5' }",
    );
    let reasons = |text: &str| -> Vec<String> {
        let rows = explain(&plan(text, &[generate::definition()]));
        rows.into_iter().map(|row| row.why).collect()
    };
    let changes = "it changes the object; ";
    let also = "it changes the object; while the webhook is unreachable, an API server with MutatingAdmissionPolicies applies it too";
    let later = format!(
        "{changes}in no policy: rules apply in order, and an earlier one is for the webhook alone"
    );
    let computed = format!("{changes}in no policy: `{{{{ .spec.image }}}}` is computed");
    assert_eq!(reasons(&text), [also, also, &computed, &later]);

    let cases = [
        (
            "normalize: { spec: { text: '{{ .spec.text | lower }}' } }\n",
            "spec.depth, default: '3'",
            "rules of `normalize` apply before it",
        ),
        (
            "",
            "'spec.{{ .spec.tier }}', default: '3'",
            "its field is computed",
        ),
        ("", "spec.maybe, default: a", "`spec.maybe` may be null"),
        (
            "",
            "spec.depth, default: '3', when: [{ field: spec.depth, lt: '2' }]",
            "`spec.depth` is set by a rule of `mutation` or `normalize`, which a policy does not see while the webhook is unreachable",
        ),
    ];
    for (before, rule, expected) in cases {
        let text = katalog(&format!(
            "{before}mutation:\n  rules:\n    - {{ field: {rule} }}"
        ));
        let why = reasons(&text).pop().unwrap();
        assert_eq!(why, format!("{changes}in no policy: {expected}"), "{rule}");
    }
}

#[test]
fn unique_and_external_are_asked_and_unanswered_ones_follow_the_failure_policy() {
    let entry = "
validation:
  external:
    - { name: judge, url: 'https://judge.example/{{ .spec.text }}' }
  rules:
    - { field: spec.image, unique: true, message: taken }
    - { field: external.judge.body, equals: 'yes', message: judged }";
    let entry = entry.replace("unique: true", "operator: unique");
    for (policy, refused) in [("Fail", true), ("Ignore", false)] {
        let text =
            katalog(&entry).replace("failurePolicy: Fail", &format!("failurePolicy: {policy}"));
        let plan = plan(&text, &[generate::definition()]);
        let operator = &plan.operators[0];
        let review = review(
            Operation::Create,
            &pond(json!({ "image": "i", "text": "t" })),
            &Value::Null,
        );
        let now = jiff::Timestamp::UNIX_EPOCH;
        let mut answers = Answers::new();
        let mut kinds = Vec::new();
        let verdict = loop {
            match admit(operator, &review, now, &answers) {
                Admitted::Done(verdict) => break verdict,
                Admitted::Need(reads) => {
                    for read in reads {
                        let answer = match &read {
                            Read::Same(..) => {
                                Answer::Ready(std::sync::Arc::new(Node::from("other")))
                            }
                            _ => Answer::Unavailable("nobody answers".into()),
                        };
                        kinds.push(matches!(read, Read::Same(..)));
                        answers.insert(read, answer);
                    }
                }
            }
        };
        assert_eq!(kinds, [true, false]);
        assert_eq!(verdict.is_allowed(), !refused, "{verdict:?}");
        let (reported, other) = if refused {
            (verdict.message(), verdict.warnings.len())
        } else {
            (verdict.warnings.join("; "), 1 - verdict.warnings.len())
        };
        assert!(reported.contains("judge") && other == 0, "{verdict:?}");
    }
}

#[test]
fn the_address_of_webhooks_is_one_that_a_shared_certificate_can_name() {
    let text =
        |security: &str| katalog("").replace("webhooks: {", &format!("{security}, webhooks: {{"));
    for good in [
        "gatewayEndpoint: 'https://gate.example.org:8443'",
        "gatewayEndpoint: ''",
        "serviceName: gate",
    ] {
        assert!(
            compiled(&text(good), &[generate::definition()]).is_ok(),
            "{good}"
        );
    }
    for (bad, path) in [
        (
            "gatewayEndpoint: 'https://münchen.example'",
            "spec.security.gatewayEndpoint",
        ),
        (
            "gatewayEndpoint: 'http://gate.example.org'",
            "spec.security.gatewayEndpoint",
        ),
        ("serviceName: 'gâte'", "spec.security.serviceName"),
        ("serviceName: a.b", "spec.security.serviceName"),
    ] {
        let refused = compiled(&text(bad), &[generate::definition()]).unwrap_err();
        let found = refused
            .iter()
            .any(|problem| problem.path.to_string() == path);
        assert!(found, "{bad}: {refused:?}");
    }
}
