//! Admission and passes return the same verdict.

use std::sync::Arc;

use orkestra_engine::{
    admission::{AdmissionVerdict, Admitted, Answers, Operation, mutate},
    reconcile::{
        reason::Reason,
        record::{CrRecord, Observed},
        step::{StepResult, step},
    },
};
use orkestra_object::value::Node;
use orkestra_plan::{GroupKind, OperatorPlan};
use orkestra_template::Entropy;
use serde_json::{Value, json};

use super::{compiled, created, denials, generate, judged, patched, plan, review};

/// Returns the observation of a pass that reads this object for the first time, without children.
fn observed(cr: CrRecord) -> Observed {
    Observed {
        inventory: cr.inventory.clone(),
        cr: Arc::new(cr),
        children: Vec::new(),
        orphans: Vec::new(),
        unseen: std::collections::BTreeSet::new(),
        reported: None,
        answers: std::collections::BTreeMap::new(),
    }
}

/// Returns the failures, as `rule: message`, and the warnings of a pass over the object.
fn pass(plan: &OperatorPlan, object: &Value) -> (Vec<String>, Vec<String>) {
    let mut object = object.clone();
    object["metadata"]["uid"] = json!("0f6a3c52-8a5e-4a0e-9d6e-2b7c1d9e4f10");
    object["metadata"]["resourceVersion"] = json!("7");
    let cr = CrRecord::read(&Node::from(&object), &plan.reads.cr).unwrap();
    let observed = observed(cr);
    let scopes: std::collections::BTreeMap<GroupKind, bool> = std::collections::BTreeMap::new();
    let now = jiff::Timestamp::UNIX_EPOCH;
    match step(plan, &scopes, &observed, now, &Entropy::seeded([7; 32])) {
        StepResult::Need(reads) => panic!("{reads:?}"),
        StepResult::Done(cycle) => {
            let prepared = &cycle.sources.prepared;
            let violations = prepared.failures.iter();
            let line = |failure: &orkestra_engine::reconcile::step::Failure| {
                format!("{}: {}", failure.at, failure.message)
            };
            assert!(
                violations
                    .clone()
                    .all(|failure| failure.reason == Reason::ValidationFailed),
                "{violations:?}"
            );
            (violations.map(line).collect(), prepared.warnings.clone())
        }
    }
}

fn reported(verdict: &AdmissionVerdict) -> (Vec<String>, Vec<String>) {
    (denials(verdict), verdict.warnings.clone())
}

#[test]
fn admission_and_passes_have_one_verdict_for_random_rules_and_objects() {
    let (mut compared, mut denied, mut changed) = (0, 0, 0);
    for seed in 0..250 {
        let mut katalog = generate::katalog(seed, seed % 2 == 1);
        only_rules_that_passes_evaluate(&mut katalog);
        let Ok((plan, _)) = compiled(&katalog.to_string(), &[generate::definition()]) else {
            continue;
        };
        let operator = &plan.operators[0];
        let mut mutation = operator.rules.mutation.iter();
        let is_conditional = mutation.any(|rule| !rule.gate.is_empty());
        for at in 0..20 {
            let object = generate::object(seed * 1000 + at);
            let verdict = created(operator, &object);
            let (denials, warnings) = pass(operator, &object);
            let cut = |warning: &String| -> String {
                warning
                    .chars()
                    .map(|c| if c.is_control() { ' ' } else { c })
                    .collect()
            };
            let warnings = warnings.iter().map(cut).collect();
            assert_eq!(
                reported(&verdict),
                (denials, warnings),
                "{katalog:#}\n{object:#}"
            );
            let (now, none) = (jiff::Timestamp::UNIX_EPOCH, Answers::new());
            let request = review(Operation::Create, &object, &Value::Null);
            let Admitted::Done(changed_only) = mutate(operator, &request, now, &none) else {
                panic!()
            };
            assert_eq!(
                (changed_only.patch, changed_only.denials.len()),
                (verdict.patch.clone(), 0)
            );
            let stored = patched(&object, &verdict);
            let again = created(operator, &stored);
            // A condition may read a field that a later rule sets.
            if !is_conditional {
                assert_eq!(again.patch, [], "{katalog:#}\n{object:#}");
            }
            compared += 1;
            denied += usize::from(!verdict.is_allowed());
            changed += usize::from(!verdict.patch.is_empty());
        }
    }
    assert!(compared > 2000, "{compared}");
    assert!(
        denied > compared / 20 && changed > compared / 20,
        "{denied} {changed} of {compared}"
    );
}

/// Removes the parts of rules that apply at admission only: immutable fields, the old object and `operation`.
fn only_rules_that_passes_evaluate(katalog: &mut Value) {
    for rule in katalog["spec"]["crds"]["pond"]["validation"]["rules"]
        .as_array_mut()
        .unwrap()
    {
        rule.as_object_mut().unwrap().remove("immutable");
        let text = rule.to_string().replace("{{ .old.", "{{ .");
        *rule = serde_json::from_str(&text).unwrap();
        if rule["field"].as_str().unwrap().contains("operation") {
            rule["field"] = json!("spec.text");
        }
    }
}

#[test]
fn a_mutation_is_a_patch_of_the_submitted_object_with_its_types() {
    let katalog = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      mutation:
        rules:
          - { field: spec.replicas, default: '2' }
          - { field: spec.more.depth, default: '{{ .spec.replicas }}' }
          - { field: spec.more.name, override: '{{ .metadata.name }}' }
          - { field: 'metadata.labels[\"water.example/kind\"]', default: pond }
          - { field: spec.open, default: 'true', when: [{ field: spec.text, equals: open }] }
          - { field: spec.tags.0.1, override: deep }
";
    let plan = plan(katalog, &[generate::definition()]);
    let object = json!({ "metadata": { "name": "a", "namespace": "b" }, "spec": { "text": "open", "tags": [["x", "y"]] } });
    let verdict = created(&plan.operators[0], &object);
    assert!(verdict.is_allowed());
    assert_eq!(
        serde_json::to_value(&verdict.patch).unwrap(),
        json!([
            { "op": "add", "path": "/metadata/labels", "value": { "water.example/kind": "pond" } },
            { "op": "add", "path": "/spec/more", "value": { "depth": 2, "name": "a" } },
            { "op": "add", "path": "/spec/open", "value": true },
            { "op": "add", "path": "/spec/replicas", "value": 2 },
            { "op": "replace", "path": "/spec/tags/0/1", "value": "deep" },
        ])
    );
    let stored = patched(&object, &verdict);
    assert_eq!(created(&plan.operators[0], &stored).patch, []);
}

#[test]
fn normalize_is_stored_at_admission_and_passes_leave_the_spec_alone() {
    let katalog = |admission: bool, persist: bool| {
        format!(
            "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {{ name: waters }}
spec:
  security: {{ webhooks: {{ admission: {{ enabled: {admission} }} }} }}
  crds:
    pond:
      apiTypes: {{ group: water.example, version: v1, kind: Pond, plural: ponds }}
      normalize:
        persist: {persist}
        spec: {{ text: '{{{{ lower .spec.text }}}}' }}
      validation: {{ rules: [{{ field: spec.text, equals: abc }}] }}
"
        )
    };
    let object = json!({ "metadata": { "name": "a", "namespace": "b", "uid": "u", "resourceVersion": "1" }, "spec": { "text": "ABC" } });
    for (admission, persist, at_admission, by_pass) in [
        (true, true, 1, false),
        (false, true, 1, true),
        (true, false, 0, false),
    ] {
        let plan = plan(&katalog(admission, persist), &[generate::definition()]);
        let verdict = created(&plan.operators[0], &object);
        assert_eq!(
            (verdict.patch.len(), denials(&verdict)),
            (at_admission, vec![])
        );
        let cr = CrRecord::read(&Node::from(&object), &plan.operators[0].reads.cr).unwrap();
        let observed = observed(cr);
        let now = jiff::Timestamp::UNIX_EPOCH;
        let done = step(
            &plan.operators[0],
            &std::collections::BTreeMap::new(),
            &observed,
            now,
            &Entropy::seeded([7; 32]),
        );
        let StepResult::Done(cycle) = done else {
            panic!()
        };
        let normalization = cycle.sources.prepared.normalization.unwrap();
        assert_eq!(
            normalization.patch.is_some(),
            by_pass,
            "{admission} {persist}"
        );
        assert_eq!(cycle.sources.prepared.failures, []);
    }
}

#[test]
fn objects_that_passes_leave_alone_are_admitted_without_rules() {
    let katalog = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  security: { namespaceProtection: { restrictedNamespaces: [closed] } }
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      labelSelector: { team: water }
      validation: { rules: [{ field: spec.text, exists: true }] }
";
    let plan = plan(katalog, &[generate::definition()]);
    let operator = &plan.operators[0];
    let of = |namespace: &str, labels: Value, more: Value| {
        let mut object = json!({ "metadata": { "name": "a", "namespace": namespace, "labels": labels }, "spec": {} });
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        created(operator, &object).is_allowed()
    };
    assert!(!of("open", json!({ "team": "water" }), json!({})));
    assert!(of("closed", json!({ "team": "water" }), json!({})));
    assert!(of("open", json!({ "team": "air" }), json!({})));
    assert!(of(
        "open",
        json!({ "team": "water" }),
        json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" })
    ));
    assert!(
        operator.watched.admits(Some("open"), "a") && !operator.watched.admits(Some("closed"), "a")
    );
    let object = json!({ "metadata": { "name": "a", "namespace": "open", "labels": { "team": "water" } }, "spec": {} });
    // Rules apply to deletions only if they are declared for them.
    assert!(judged(operator, &review(Operation::Delete, &Value::Null, &object)).is_allowed());
}
