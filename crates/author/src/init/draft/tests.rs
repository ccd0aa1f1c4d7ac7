//! Drafts from the files of `tests/inputs/init`: the written files are valid, and the sample renders to the input.
//!
//! One file: a test for each source of a draft.

use std::{
    fs,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use orkestra_language::{api::names, diagnostics::FieldPath};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::render::{RenderRequest, render};
use orkestra_loader::files::validate;

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let folder = orkestra_testkit::root()
        .join("tests/inputs/init")
        .join(folder);
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

/// Writes a draft, and checks the properties that every draft must have.
async fn written(draft: &Draft) -> TempDir {
    let folder = TempDir::new().unwrap();
    let root = folder.path();
    if let Err(why) = write_draft(draft, root).await {
        panic!("{why}\n{}", draft.katalog_text().unwrap());
    }
    let mut found = validate(&[root.to_owned()]).await;
    let problems = &mut found.problems.0;
    problems.retain(|problem| !is_listed(&draft.left, problem));
    let katalog = fs::read_to_string(root.join(KATALOG)).unwrap();
    assert!(
        !found.problems.has_errors(),
        "{}\n{katalog}",
        found.problems
    );
    for left in &draft.left {
        let beginning = left.split_whitespace().next().unwrap();
        assert!(katalog.contains(beginning), "{left}");
    }
    assert_valid_sample(root, draft);
    folder
}

/// Checks that the schema of the written CRD accepts the written sample, except for the items that the draft lists.
fn assert_valid_sample(root: &Path, draft: &Draft) {
    let read = |name| -> Value {
        let text = fs::read_to_string(root.join(name)).unwrap();
        serde_saphyr::from_str(&text).unwrap()
    };
    let (crd, sample) = (read(CRD), read(SAMPLE));
    let versions = crd["spec"]["versions"].as_array().unwrap();
    let version = versions
        .iter()
        .find(|version| version["name"] == draft.kind.version.as_str())
        .unwrap();
    let schema = jsonschema::validator_for(&version["schema"]["openAPIV3Schema"]).unwrap();
    let wrong: Vec<String> = schema
        .iter_errors(&sample)
        .map(|why| format!("{}: {why}", why.instance_path()))
        .collect();
    let is_said = draft.left.iter().any(|left| left.contains("sample"));
    assert!(wrong.is_empty() || is_said, "{wrong:?} in {sample}");
}

#[tokio::test]
async fn a_draft_for_a_definition_compiles_and_its_sample_is_valid() {
    for file in fixtures("crds") {
        let draft = Origin::Crd(file.clone()).convert(None, None, None).unwrap();
        let folder = written(&draft).await;
        let katalog = fs::read_to_string(folder.path().join(KATALOG)).unwrap();
        let stem = file.file_stem().unwrap().to_str().unwrap();
        let expected = match stem {
            "app" => "replicas: \"{{ .spec.replicas }}\"",
            "certificate" => "secretName: \"{{ .spec.secretName }}\"",
            "zone" => "namespace: default",
            other => panic!("no expectation for {other}"),
        };
        assert!(katalog.contains(expected), "{katalog}");
    }
}

#[test]
fn only_the_listed_fields_of_a_sample_may_be_refused() {
    let left = [
        "the sample: spec.code needs a text that matches `^zone-[a-z]{7}$`".to_owned(),
        "the sample: spec.web has validation rules".to_owned(),
        "spec.size is omitted".to_owned(),
    ];
    let refused = |path: &str| {
        let path = FieldPath::parse(path);
        Diagnostic::error(Code::RefusedResource, path, "why")
    };
    for path in ["spec.code", "spec.code[2]"] {
        assert!(is_listed(&left, &refused(path)), "{path}");
    }
    for path in ["spec", "spec.codes", "spec.code.a", "spec.size", "spec.web"] {
        assert!(!is_listed(&left, &refused(path)), "{path}");
    }
    for (path, expected) in [
        ("spec.web", true),
        ("spec.web.host", true),
        ("spec.website", false),
        ("spec.code", false),
    ] {
        let by_rule = refused(path).hint("rule: self.a > 1");
        assert_eq!(is_listed(&left, &by_rule), expected, "{path}");
    }
    let other = Diagnostic::error(Code::CannotRender, FieldPath::parse("spec.code"), "why");
    assert!(!is_listed(&left, &other));
}

#[test]
fn one_of_several_definitions_is_selected_by_its_kind() {
    let folder = fixtures("crds")[0].parent().unwrap().to_owned();
    let why = Origin::Crd(folder.clone())
        .convert(None, None, None)
        .unwrap_err();
    assert!(why.to_string().contains("--kind"), "{why}");
    let draft = Origin::Crd(folder).convert(Some("zones"), Some("Zone"), None);
    let draft = draft.unwrap();
    assert_eq!((&*draft.name, &*draft.kind.plural), ("zones", "zones"));
    assert!(
        draft.left.iter().any(|left| left.contains("spec.code")),
        "{:?}",
        draft.left
    );
}

#[tokio::test]
async fn the_sample_of_converted_manifests_renders_the_manifests() {
    for file in fixtures("manifests") {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let draft = Origin::Manifests(file.clone())
            .convert(None, None, None)
            .unwrap();
        let folder = written(&draft).await;
        let root = folder.path();
        let katalog = fs::read_to_string(root.join(KATALOG)).unwrap();
        let rendered = render(&RenderRequest {
            katalogs: vec![root.join(KATALOG)],
            resources: vec![root.join(SAMPLE)],
            status: None,
            children: Vec::new(),
            cross: Vec::new(),
            calls: None,
            now: Timestamp::UNIX_EPOCH,
            fetch: std::sync::Arc::new(orkestra_loader::compose::DiskFiles),
        })
        .await;
        let made: Vec<Value> = rendered.passes[0]
            .preview
            .objects
            .iter()
            .map(orkestra_object::value::Node::to_json)
            .collect();
        let mut given = Vec::new();
        for one in
            serde_saphyr::from_multiple::<Value>(&fs::read_to_string(&file).unwrap()).unwrap()
        {
            match one["items"].as_array() {
                Some(items) => given.extend(items.clone()),
                None => given.push(one),
            }
        }
        given.retain(|one| one["kind"] != "Namespace");
        // Shorthand is used where it exists.
        let is_written_out = katalog.contains(" custom:");
        assert_eq!(
            is_written_out,
            ["agent", "odd"].contains(&&*name),
            "{katalog}"
        );
        assert_eq!(made.len(), given.len(), "{name}: {katalog}");
        for object in &given {
            let same = |one: &&Value| {
                one["kind"] == object["kind"]
                    && one["metadata"]["name"] == object["metadata"]["name"]
            };
            let found = made.iter().find(same);
            let found = found.unwrap_or_else(|| panic!("{name}: no {object} by\n{katalog}"));
            let [is, should] = [found, object].map(comparable);
            assert_eq!(is, should, "{name}: by\n{katalog}");
        }
    }
}

/// Returns an object without the fields that the operator sets, and with defaults filled in.
fn comparable(object: &Value) -> Value {
    let mut object = without_nulls(object);
    let map = object.as_object_mut().unwrap();
    map.remove("status");
    if let Some(plain) = map.remove("stringData") {
        for (key, text) in plain.as_object().unwrap() {
            map["data"][key] = json!(STANDARD.encode(text.as_str().unwrap()));
        }
    }
    let metadata = map["metadata"].as_object_mut().unwrap();
    metadata.remove("namespace");
    for field in ["labels", "annotations"] {
        let Some(all) = metadata.get_mut(field).and_then(Value::as_object_mut) else {
            continue;
        };
        all.retain(|key, _| {
            !key.starts_with(names::PREFIX) && !key.starts_with("deployment.kubernetes.io/")
        });
        if all.is_empty() {
            metadata.remove(field);
        }
    }
    for template in ["/spec/template", "/spec/jobTemplate/spec/template"] {
        if let Some(template) = object.pointer_mut(template) {
            comparable_pods(template);
        }
    }
    for subject in object["subjects"].as_array_mut().into_iter().flatten() {
        subject.as_object_mut().unwrap().remove("namespace");
    }
    let kind = object["kind"].clone();
    let has_selector = [
        "Deployment",
        "StatefulSet",
        "DaemonSet",
        "Service",
        "PodDisruptionBudget",
    ];
    if has_selector.iter().any(|one| kind == *one) {
        object["spec"].as_object_mut().unwrap().remove("selector");
    }
    if kind == "Service" {
        for port in object["spec"]["ports"].as_array_mut().into_iter().flatten() {
            let number = port["port"].clone();
            let target = port.as_object_mut().unwrap().entry("targetPort");
            target.or_insert(number);
        }
    }
    object
}

/// Removes the Pod labels that distinguish instances, and replaces the name of the first container: the operator sets both.
fn comparable_pods(template: &mut Value) {
    template["spec"]["containers"][0]["name"] = json!("first");
    let metadata = template["metadata"].as_object_mut();
    let labels = metadata.and_then(|metadata| metadata.get_mut("labels")?.as_object_mut());
    if let Some(labels) = labels {
        labels.retain(|key, _| {
            let added =
                ["name", "instance", "managed-by"].map(|one| format!("app.kubernetes.io/{one}"));
            !key.starts_with(names::PREFIX) && !added.contains(key)
        });
    }
    if template["metadata"] == json!({ "labels": {} }) || template["metadata"] == json!({}) {
        template.as_object_mut().unwrap().remove("metadata");
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let entries = map.iter().filter(|(_, below)| !below.is_null());
            Value::Object(
                entries
                    .map(|(key, below)| (key.clone(), without_nulls(below)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

#[test]
fn what_differs_between_instances_is_in_the_spec() {
    let file = fixtures("manifests")
        .into_iter()
        .find(|file| file.ends_with("guestbook.yaml"))
        .unwrap();
    let draft = Origin::Manifests(file).convert(None, None, None).unwrap();
    let spec = &draft.sample["spec"];
    assert_eq!(spec["redis"]["image"], "redis:7");
    assert_eq!(spec["frontend"]["replicas"], 3);
    assert_eq!(spec["frontend"]["env"], json!({ "GET_HOSTS_FROM": "dns" }));
    let katalog = draft.katalog_text().unwrap();
    assert!(
        katalog.contains("redis://{{ .metadata.name }}-redis:6379/0"),
        "{katalog}"
    );
}

#[tokio::test]
async fn plain_paths_of_a_definition_of_kro_are_converted_and_the_rest_is_reported() {
    let file = fixtures("kro").remove(0);
    let draft = Origin::Kro(file).convert(None, None, None).unwrap();
    let folder = written(&draft).await;
    let katalog = fs::read_to_string(folder.path().join(KATALOG)).unwrap();
    for part in [
        "name: \"{{ .spec.name }}-svc\"",
        "replicas: \"{{ .spec.replicas }}\"",
        "value: \"{{ .children.deployment.status.availableReplicas }}\"",
        "http://{{ .spec.name }}-svc.{{ .metadata.namespace }}",
        "field: spec.ingress.enabled",
    ] {
        assert!(katalog.contains(part), "no `{part}` in {katalog}");
    }
    let left = draft.left.join("\n");
    for part in ["upperAscii()", "externalRef", "readyWhen", "status.ready"] {
        assert!(left.contains(part), "no `{part}` in {left}");
    }
    let properties = &draft.crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    assert_eq!(properties["spec"]["required"], json!(["name"]));
    assert_eq!(properties["spec"]["properties"]["replicas"]["default"], 3);
}

#[tokio::test]
async fn templates_of_a_chart_that_read_values_alone_are_converted() {
    let draft = Origin::Helm(fixtures("charts").remove(0));
    let draft = draft.convert(None, None, None).unwrap();
    let folder = written(&draft).await;
    let katalog = fs::read_to_string(folder.path().join(KATALOG)).unwrap();
    for part in [
        "name: \"{{ .metadata.name }}-echo\"",
        "image: \"{{ .spec.image.repository }}:4.5\"",
        "app.kubernetes.io/version: \"4.5\"",
        "helm template echo CHART | ork init echo --from-manifests -",
        "templates/service.yaml",
    ] {
        assert!(katalog.contains(part), "no `{part}` in {katalog}");
    }
    let expected = fs::read_to_string(folder.path().join(crate::init::EXPECTED)).unwrap();
    for part in ["registry.example/echo:4.5", "replicas: 2", "- hello"] {
        assert!(expected.contains(part), "no `{part}` in {expected}");
    }
    let empty = TempDir::new().unwrap();
    let refused = Origin::Helm(empty.path().to_owned()).convert(None, None, None);
    assert!(refused.unwrap_err().to_string().contains("Chart.yaml"));
}

#[tokio::test]
async fn a_chart_with_helpers_is_converted_by_what_it_renders() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "Chart.yaml",
        "apiVersion: v2\nname: echo\nversion: 1.0.0\nappVersion: \"4.5\"\n",
    );
    write(
        "values.yaml",
        "replicas: 2\nimage: {repository: registry.example/echo}\nresources: {limits: {memory: 64Mi}}\n",
    );
    write(
        "templates/_helpers.tpl",
        "{{- define \"echo.labels\" -}}\napp.kubernetes.io/name: {{ .Chart.Name }}\napp.kubernetes.io/instance: {{ .Release.Name }}\n{{- end }}\n{{- define \"echo.fullname\" -}}\n{{ .Release.Name }}-echo\n{{- end }}\n",
    );
    write(
        "templates/deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ include \"echo.fullname\" . }}\n  labels:\n    {{- include \"echo.labels\" . | nindent 4 }}\nspec:\n  replicas: {{ .Values.replicas }}\n  selector:\n    matchLabels:\n      {{- include \"echo.labels\" . | nindent 6 }}\n  template:\n    metadata:\n      labels:\n        {{- include \"echo.labels\" . | nindent 8 }}\n    spec:\n      containers:\n        - name: echo\n          image: \"{{ .Values.image.repository }}:{{ .Chart.AppVersion }}\"\n          resources:\n            {{- toYaml .Values.resources | nindent 12 }}\n",
    );
    let draft = Origin::Helm(folder.path().to_owned());
    let draft = draft.convert(None, None, None).unwrap();
    assert!(
        draft.left[0].contains("rendered with the chart's own values"),
        "{:?}",
        draft.left
    );
    let written = written(&draft).await;
    let expected = fs::read_to_string(written.path().join(crate::init::EXPECTED)).unwrap();
    for part in ["registry.example/echo:4.5", "replicas: 2", "64Mi"] {
        assert!(expected.contains(part), "no `{part}` in {expected}");
    }
}

#[test]
fn the_smallest_definition_of_kro_has_a_sample_that_renders() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("rgd.yaml");
    let text = "apiVersion: kro.run/v1alpha1
kind: ResourceGraphDefinition
metadata: {name: my-app}
spec:
  schema:
    apiVersion: v1alpha1
    kind: Application
    spec:
      name: string
      image: string | default=\"nginx\"
  resources:
    - id: settings
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: \"${schema.spec.name}-settings\"}
        data: {image: \"${schema.spec.image}\"}
";
    fs::write(&file, text).unwrap();
    let draft = Origin::Kro(file).convert(None, None, None).unwrap();
    assert_eq!(draft.sample["spec"]["name"], "example");
}

#[test]
fn odd_input_gives_a_draft_or_an_error() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("odd.yaml");
    for text in [
        "",
        "3",
        "[1, 2]",
        "kind: 3",
        "kind: Deployment\napiVersion: apps/v1",
        "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: x}",
        "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: [x]}\nspec: 3",
        "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: x, labels: 3}\nspec: {template: {metadata: [], spec: {containers: [3]}}}",
        "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: 'A {{ b'}\nspec: {replicas: x, template: {spec: {containers: [{image: 3, ports: 3, env: [3]}]}}}",
        "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: x}\nspec: {template: {metadata: 3, spec: {containers: [{image: a, ports: [{containerPort: x}], env: {a: b}}], restartPolicy: 3}}}",
        "kind: Service\napiVersion: v1\nmetadata: {name: x}\nspec: {selector: {a: 1}, ports: [3]}",
        "kind: Service\napiVersion: v1\nmetadata: {name: x}\nspec: {selector: [], ports: {}}",
        "kind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata: {name: x}\nspec: {rules: [[]], tls: 3}",
        "kind: Secret\napiVersion: v1\nmetadata: {name: x}\ndata: {a: '%'}\nstringData: 3",
        "kind: CronJob\napiVersion: batch/v1\nmetadata: {name: x}\nspec: {jobTemplate: {spec: 3}}",
        "kind: StatefulSet\napiVersion: apps/v1\nmetadata: {name: x}\nspec: {volumeClaimTemplates: [3], template: {spec: {containers: [{image: a}]}}}",
        "kind: X\napiVersion: a/b\nmetadata: {name: x}\nwhen: []\npatch: {}\nor: 3",
        "kind: ResourceGraphDefinition",
        "kind: ResourceGraphDefinition\nspec: {schema: {kind: X, spec: {a: '[][][]x | default=', b: '|', c: {d: []}}, types: {x: {y: x, z: x}}}, resources: 3}",
        "kind: ResourceGraphDefinition\nspec: {schema: {kind: X, spec: 3, status: {a: {b: '${'}}}, resources: [3, {id: a, template: {apiVersion: v1, kind: B, metadata: {name: '${a.metadata.name}${a.metadata.name}'}}}, {id: b, includeWhen: [3, '${x ? y : \\'}\\'}'], template: {apiVersion: v1, kind: C, metadata: {name: 'x', labels: 3}}}]}",
        "kind: CustomResourceDefinition",
        "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nspec: {group: 3, versions: 3}",
        "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nspec: {group: a.b, names: {kind: '', plural: X}, versions: [{name: v1, served: true}]}",
        "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nspec: {group: a.b, names: {kind: X, plural: xs}, versions: [{name: v1, served: true, schema: {openAPIV3Schema: {required: 3, properties: {spec: {type: object, required: [a, b], minProperties: 99999999999, properties: {a: {type: array, minItems: -3}, b: 3}}}}}}]}",
    ] {
        fs::write(&file, text).unwrap();
        let (crd, manifests) = (Origin::Crd(file.clone()), Origin::Manifests(file.clone()));
        for origin in [crd, manifests, Origin::Kro(file.clone())] {
            if let Ok(draft) = origin.convert(None, None, None) {
                let texts = [draft.katalog_text(), draft.crd_text(), draft.sample_text()];
                assert!(texts.iter().all(Result::is_ok), "{text}");
            }
        }
    }
}
