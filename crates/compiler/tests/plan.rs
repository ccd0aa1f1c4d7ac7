//! Compiling of Katalogs to plans. One file in `inputs/plan/` is one case, with the expected results in files of the same name.
//!
//! `UPDATE=1 cargo test -p orkestra-compiler --test plan` writes the expected files again; read the diff.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a case that cannot be read is a fault of the test"
)]

#[path = "plan/any.rs"]
mod any;
#[path = "plan/changes.rs"]
mod changes;
#[path = "plan/scaled.rs"]
mod scaled;

use std::{collections::BTreeSet, fs, path::Path, path::PathBuf};

use orkestra_compiler::{compile, scope::Library};
use orkestra_language::{
    api::KatalogSpec,
    diagnostics::Diagnostics,
    document::{Tree, parse_stream, read_what_can_be},
};
use orkestra_object::value::Node;
use orkestra_plan::{
    KatalogRef, Plan,
    definitions::{self, Schemas},
    describe,
};
use serde_json::{Value, json};

/// Returns the cases in a folder, sorted.
fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/inputs/plan")
        .join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "yaml")
    });
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Returns the plan of a `spec` in YAML.
fn plan_of(spec: &str) -> Plan {
    let spec: Value = serde_saphyr::from_str(spec).unwrap();
    let spec = serde_json::from_value(spec).unwrap();
    let (plan, _) =
        compile::katalog(&katalog(), &spec, &Schemas::default(), &Library::default()).unwrap();
    plan
}

/// Returns an entry of the kind `kind`, with a `ConfigMap` that contains one text.
fn entry(name: &str, kind: &str, text: &str) -> String {
    let plural = kind.to_lowercase() + "s";
    format!(
        "{name}: {{ apiTypes: {{ group: a.example, version: v1, kind: {kind}, plural: {plural} }}, operatorBox: \
         {{ onReconcile: {{ configMaps: [{{ data: {{ a: {text} }} }}] }} }} }}"
    )
}

fn with_entries(entries: &[String]) -> Plan {
    plan_of(&format!("crds: {{ {} }}", entries.join(", ")))
}

#[test]
fn one_entry_without_a_kind_is_distinguished_from_other_problems() {
    let compile = |spec: &str| {
        let spec = serde_json::from_value(serde_saphyr::from_str(spec).unwrap()).unwrap();
        compile::katalog(&katalog(), &spec, &Schemas::default(), &Library::default()).unwrap_err()
    };
    assert!(compile::lacks_api_types(&compile(
        "crds: { pond: { crdFile: far/away.yaml } }"
    )));
    assert!(!compile::lacks_api_types(&compile(
        "crds: { pond: { crdFile: far/away.yaml, workers: 0 } }"
    )));
}

#[test]
fn the_manifests_are_a_namespace_an_account_and_a_role_and_binding_each() {
    let plan = with_entries(&[entry("pond", "Pond", "cold")]);
    let manifests = orkestra_plan::rbac::manifests(&[&plan], &BTreeSet::new());
    let kinds: Vec<String> = manifests
        .iter()
        .map(|one| format!("{} {}", one["kind"], one["metadata"]["name"]).replace('"', ""))
        .collect();
    assert_eq!(
        kinds,
        [
            "Namespace orkestra-system",
            "Namespace orkestra-claims",
            "ServiceAccount orkestra",
            "Role orkestra-leader-election",
            "RoleBinding orkestra-leader-election",
            "Role orkestra-claims",
            "RoleBinding orkestra-claims",
            "ClusterRole orkestra",
            "ClusterRoleBinding orkestra",
            "ClusterRole orkestra-webhooks",
            "ClusterRoleBinding orkestra-webhooks",
            "Role orkestra-webhooks",
            "RoleBinding orkestra-webhooks",
            "ClusterRole orkestra:gardens:ponds",
            "ClusterRoleBinding orkestra:gardens:ponds",
        ]
    );
    let expected = json!([
        { "apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"] },
        { "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["list", "watch"] },
        { "apiGroups": ["apps"], "resources": ["controllerrevisions"], "verbs": ["create", "delete", "list"] },
        { "apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"] },
        { "apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"] },
        { "apiGroups": ["orkestra.orkspace.io"], "resources": ["katalogs", "komposers"], "verbs": ["get", "list", "patch", "watch"] },
        { "apiGroups": ["orkestra.orkspace.io"], "resources": ["motifs"], "verbs": ["list", "watch"] },
        { "apiGroups": ["orkestra.orkspace.io"], "resources": ["katalogs/status", "komposers/status"], "verbs": ["patch"] },
        { "apiGroups": ["orkestra.orkspace.io"], "resources": ["katalogs/finalizers", "komposers/finalizers"], "verbs": ["update"] },
    ]);
    assert_eq!(manifests[7]["rules"], expected);
    let lease = json!([
        { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"] },
        { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update", "watch"], "resourceNames": ["orkestra"] },
    ]);
    assert_eq!(manifests[3]["rules"], lease);
    let claims = json!([
        { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "delete", "get", "list", "patch", "watch"] },
    ]);
    assert_eq!(manifests[5]["rules"], claims);
    for (manifests, namespace) in [
        (&manifests[3..5], "orkestra-system"),
        (&manifests[5..7], "orkestra-claims"),
    ] {
        for manifest in manifests {
            assert_eq!(manifest["metadata"]["namespace"], namespace);
        }
    }
}

/// Reads a case: the document, the Katalog's `spec` in it, and the definitions under `definitions`.
fn read(file: &Path) -> (Tree, KatalogSpec, Schemas) {
    let text = fs::read_to_string(file).unwrap();
    let shown = file.file_name().unwrap().to_str().unwrap();
    let mut stream = parse_stream(shown, &text);
    assert!(stream.problems.is_empty(), "{}", stream.problems);
    let tree = stream.sources.remove(0).tree;
    let mut case = tree.to_json();
    let mut schemas = Schemas::default();
    for (name, crd) in case["definitions"].take().as_object().into_iter().flatten() {
        let shape = definitions::CrdShape::from_crd(&Node::from(crd)).unwrap();
        schemas.insert_file(name, shape);
    }
    let spec = serde_json::from_value(case["spec"].take())
        .unwrap_or_else(|error| panic!("{shown}: {error}"));
    (tree, spec, schemas)
}

/// Compiles a case.
fn compile(file: &Path) -> Result<(Plan, Diagnostics), Diagnostics> {
    let (tree, spec, schemas) = read(file);
    let located = |mut found: Diagnostics| {
        found.locate(&tree, file.file_name().unwrap().to_str());
        found
    };
    match compile::katalog(&katalog(), &spec, &schemas, &Library::default()) {
        Ok((plan, warnings)) => Ok((plan, located(Diagnostics(warnings)))),
        Err(problems) => Err(located(problems)),
    }
}

fn katalog() -> KatalogRef {
    KatalogRef::new("gardens".into(), "ponds".into())
}

/// Compares the result with the expected file of the case.
fn expect(case: &Path, extension: &str, found: &str, failures: &mut Vec<String>) {
    let file = case.with_extension(extension);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, found).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    if expected != found {
        failures.push(format!("{} differs; found:\n{found}", file.display()));
    }
}

fn shown(plan: &Plan, warnings: &Diagnostics) -> String {
    let operators: Vec<Value> = plan
        .operators
        .iter()
        .map(|operator| {
            json!({
                "name": operator.name,
                "workers": operator.workers,
                "resync": operator.resync.as_secs(),
                "plan": describe::operator(operator).to_json(),
            })
        })
        .collect();
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let rights = orkestra_plan::rbac::permissions(plan);
    let mut shown =
        json!({ "operators": operators, "rights": rights.cluster, "warnings": warnings });
    if !rights.namespaces.is_empty() {
        shown["namespacedRights"] = json!(rights.namespaces);
    }
    serde_json::to_string_pretty(&shown).unwrap() + "\n"
}

#[test]
fn katalogs_compile_to_the_expected_plans_and_permissions() {
    let mut failures = Vec::new();
    for case in cases("plans") {
        match compile(&case) {
            Ok((plan, warnings)) => expect(&case, "json", &shown(&plan, &warnings), &mut failures),
            Err(problems) => failures.push(format!("{}:\n{problems}", case.display())),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn mistakes_are_all_reported_at_once_with_path_and_advice() {
    let mut failures = Vec::new();
    for case in cases("mistakes") {
        match compile(&case) {
            Ok((_, warnings)) => {
                failures.push(format!("{} compiles, with {warnings}", case.display()));
            }
            Err(problems) => expect(&case, "txt", &format!("{problems}\n"), &mut failures),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_expression_is_listed_with_its_place_and_type() {
    let mut failures = Vec::new();
    for case in cases("types") {
        let (tree, spec, schemas) = read(&case);
        let listed = compile::types(&katalog(), &spec, &schemas, &Library::default());
        let lines: Vec<String> = listed
            .into_iter()
            .map(|mut typed| {
                typed.locate(&tree);
                let (line, column) = (typed.line.unwrap(), typed.column.unwrap());
                let wanted = typed.wanted.map(|wanted| format!(" for {wanted}"));
                format!(
                    "{line}:{column} {}: {} is {}{}\n",
                    typed.path,
                    typed.source,
                    typed.type_name,
                    wanted.unwrap_or_default()
                )
            })
            .collect();
        expect(&case, "txt", &lines.concat(), &mut failures);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn compiling_twice_gives_the_same_hashes() {
    for case in cases("plans") {
        let hashes = || {
            compile(&case)
                .unwrap()
                .0
                .operators
                .iter()
                .map(|operator| operator.hash.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(hashes(), hashes());
    }
}

#[test]
fn no_permission_is_a_wildcard_or_grants_permissions() {
    for case in cases("plans") {
        let (plan, _) = compile(&case).unwrap();
        for manifest in orkestra_plan::rbac::manifests(&[&plan], &BTreeSet::new()) {
            for rule in manifest["rules"].as_array().into_iter().flatten() {
                let text = rule.to_string();
                assert!(
                    !text.contains('*') && !text.contains("escalate") && !text.contains("bind\""),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn what_is_wrong_in_templates_is_reported_beside_what_is_wrong_elsewhere() {
    let text = concat!(
        "apiVersion: orkestra.orkspace.io/v1\n",
        "kind: Katalog\n",
        "metadata: { name: two-mistakes }\n",
        "spec:\n",
        "  crds:\n",
        "    pond:\n",
        "      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }\n",
        "      operatorBox:\n",
        "        onReconcile:\n",
        "          configMaps:\n",
        "            - name: \"{{ .metadata.name | toLowr }}\"\n",
        "              dta: { a: b }\n",
    );
    let reported = |file: &str, text: &str| {
        let (document, found) = read_what_can_be(&parse_stream(file, text).sources[0]);
        let (schemas, library) = (Schemas::default(), Library::default());
        compile::errors_in_templates(&document.unwrap(), &found, &schemas, &library).to_string()
    };
    let good = reported("one.yaml", &text.replace("dta:", "data:"));
    assert!(good.is_empty(), "{good}");
    let reported = reported("two.yaml", text);
    assert!(reported.starts_with("two.yaml:11:"), "{reported}");
    assert!(reported.contains("toLower"), "{reported}");
    assert_eq!(reported.matches("error[").count(), 1, "{reported}");
}

#[test]
fn the_operators_of_a_katalog_may_make_each_others_resources() {
    let spec = r#"crds:
  pond:
    apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
    operatorBox:
      onReconcile:
        custom: [{ apiVersion: water.example/v1, kind: Mouse, metadata: { name: "{{ .metadata.name }}" } }]
  mouse:
    apiTypes: { group: water.example, version: v1, kind: Mouse, plural: mice }
"#;
    let spec = serde_json::from_value(serde_saphyr::from_str(spec).unwrap()).unwrap();
    let (plan, warnings) =
        compile::katalog(&katalog(), &spec, &Schemas::default(), &Library::default()).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let pond = &plan.operators[1];
    assert_eq!(pond.children[0].kind.plural.as_deref(), Some("mice"));
}

#[test]
fn the_finalizers_of_the_operator_box_take_precedence_over_those_of_the_entry_and_the_katalog() {
    let [katalog, entry, inner] =
        ["a", "b", "c"].map(|word| format!("finalizers: [a.example/{word}]"));
    for (katalog, entry, inner, expected) in [
        (&*katalog, &*entry, &*inner, (true, &["a.example/c"][..])),
        (&*katalog, &*entry, "", (true, &["a.example/b"])),
        (&*katalog, "", "", (true, &["a.example/a"])),
        (&*katalog, &*entry, "finalizers: []", (false, &[])),
        ("", "", "", (true, &[])),
    ] {
        let spec = format!(
            "{katalog}\ncrds:\n  pond:\n    apiTypes: {{ group: a.example, version: v1, kind: Pond, plural: ponds }}\n    \
             {entry}\n    operatorBox:\n      onReconcile: {{ configMaps: [{{ name: a }}] }}\n      {inner}\n"
        );
        let plan = plan_of(&spec);
        let operator = &plan.operators[0];
        let others: Vec<&str> = operator
            .other_finalizers
            .iter()
            .map(|name| &**name)
            .collect();
        assert_eq!((operator.finalizer, &*others), expected, "{spec}");
    }
}
